// validation/errors.json as it was at build time.
#ifndef TPUSIM_SIM_RESULTS_EMBEDDED_ERRORS_H_
#define TPUSIM_SIM_RESULTS_EMBEDDED_ERRORS_H_

#include <string_view>
#include <vector>

namespace tpusim::results {

struct EmbeddedErrors {
  std::string_view name;
  std::string_view json;
};

const std::vector<EmbeddedErrors>& EmbeddedErrorFiles();  // one

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_EMBEDDED_ERRORS_H_
