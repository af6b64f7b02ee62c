// The trace in Perfetto's own format, to be opened at ui.perfetto.dev.
//
// See trace_model.h for what is in it. Slices carry the operation's name, shape, FLOPs, bytes,
// source line and grid step as arguments; arrows lead from a transfer to where it arrives, and from
// the start of an asynchronous operation by way of its flight to its done. Merged grid steps
// (sim/recording/step_merger.h) carry how many spans they were and for how long those were busy.
#ifndef TPUSIM_SIM_RESULTS_TRACE_PERFETTO_H_
#define TPUSIM_SIM_RESULTS_TRACE_PERFETTO_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "configs/topology.h"
#include "models/isa/program_info.h"
#include "sim/results/trace/trace_model.h"
#include "sim/timeline.h"

namespace tpusim::results {

// Hears the progress of writing a trace.
class TraceListener {
 public:
  virtual ~TraceListener() = default;
  // Called before anything is written; about so many bytes will be.
  virtual void Begins(int64_t estimated_bytes) = 0;
  // Called with the bytes written so far.
  virtual void Written(int64_t bytes) = 0;
};

// Writes the file (see OutputFile) window by window, and returns what a reader of it must find.
absl::StatusOr<TraceTotals> WritePerfettoTrace(const std::string& path,
                                               const configs::Config& config,
                                               const isa::ProgramInfo& info,
                                               const sim::Timeline& timeline,
                                               TraceListener* listener = nullptr);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_PERFETTO_H_
