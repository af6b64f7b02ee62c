// Flags of what shows when things happened, traces and the page, and what is recorded for them.
#ifndef TPUSIM_TOOLS_TPUSIM_TRACE_FLAGS_H_
#define TPUSIM_TOOLS_TPUSIM_TRACE_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/tpusim/outputs.h"
#include "tools/tpusim/pipeline.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tpusim::tools {

struct TraceFlags {
  std::string trace, totals, html;  // files; "" = none
  std::string xplane;               // a folder
  std::string chips;                // "all", "distinct", "0,3"; "" = see RecordingOf
  std::string detail;               // "ops", "blocks"; "" likewise
  std::string blocks = "16";        // per operation and track
};
void AddTraceFlags(CLI::App& app, TraceFlags& flags);

// What CheckOutputs is to look at, and what it does not: folders.
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

#endif  // TPUSIM_TOOLS_TPUSIM_TRACE_FLAGS_H_
