// The producer of an output: the version of tpusim and the command that makes the output again.
//
// Every JSON output begins with its schema and these, and `tpusim schema` prints the schemas. There
// is no time and no machine in it: the same command writes the same bytes.
#ifndef TPUSIM_SIM_RESULTS_REPORT_PRODUCER_H_
#define TPUSIM_SIM_RESULTS_REPORT_PRODUCER_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tpusim::results {

struct Producer {
  std::string version;
  // {"tpusim", "run", "--config=v5e-4x2", "step.pb"}: what decides the content, not where it is
  // written and what is shown beside it.
  std::vector<std::string> command_line;
};

// {"schema": schema, "tpusim_version": ..., "command_line": [...]}, to be added to.
nlohmann::ordered_json HeadOf(std::string_view schema, const Producer& producer);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_PRODUCER_H_
