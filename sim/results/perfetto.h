// The trace in Perfetto's own format, to be opened at ui.perfetto.dev.
//
// See trace_model.h for what is in it. Slices carry the operation's name,
// shape, FLOPs, bytes, source line and grid step as arguments; arrows lead from
// a transfer to where it arrives.
#ifndef TPUSIM_SIM_RESULTS_PERFETTO_H_
#define TPUSIM_SIM_RESULTS_PERFETTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "configs/topology.h"
#include "models/isa/program_info.h"
#include "sim/results/trace_model.h"
#include "sim/timeline.h"

namespace tpusim::results {

std::string EncodePerfetto(const TraceModel& model, const isa::ProgramInfo& info);

// Writes the file (see WriteFileAtomically) and returns what a reader of it
// must find.
absl::StatusOr<TraceTotals> WritePerfettoTrace(const std::string& path,
                                               const configs::Config& config,
                                               const isa::ProgramInfo& info,
                                               const sim::Timeline& timeline);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_PERFETTO_H_
