// Flags of what is shown: where the time of a step goes (sim/results/report/rollup.h), and when things
// happened, traces and the page, and what is recorded for them.
#ifndef TPUSIM_TOOLS_TPUSIM_PIPELINE_TRACE_FLAGS_H_
#define TPUSIM_TOOLS_TPUSIM_PIPELINE_TRACE_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/results/report/rollup.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/pipeline.h"

namespace tpusim::tools {

struct RollupFlags {
  std::string by;  // --by, checked by the parser; "" = not given
  size_t top = 0;  // --top; 0 = not given
  results::RollupBy By(results::RollupBy otherwise) const {
    return results::RollupOf(by).value_or(otherwise);
  }
};
// `flags` must live as long as the parser.
void AddRollupFlags(CLI::App& app, RollupFlags& flags);

struct TraceFlags {
  std::string trace, totals, html;  // files; "" = none
  std::string xplane;               // a folder
  std::string chips;                // "all", "distinct", "0,3"; "" = see RecordingOf
  std::string detail;               // "ops", "blocks"; "" likewise
  std::string blocks = "16";        // per operation and track
};
void AddTraceFlags(CLI::App& app, TraceFlags& flags);

// Returns the files that CheckOutputs checks, which are not folders.
std::vector<OutputPath> OutputsOf(const TraceFlags& flags);
absl::Status CheckFolders(const TraceFlags& flags);

// The devices whose spans are kept, and how much of them. Where little is asked for it is one
// device per distinct program, unless those are many, then the first; and the parts of
// operations unless these are many devices: a trace should open in a browser.
// Error: a chip that is not there.
absl::StatusOr<Recorded> RecordingOf(const TraceFlags& flags, const Prepared& prepared);

// Warns before a trace is large; on a terminal, says how far it is.
absl::Status WriteTraces(const TraceFlags& flags, const Prepared& prepared,
                         const Simulated& simulated, bool quiet);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_PIPELINE_TRACE_FLAGS_H_
