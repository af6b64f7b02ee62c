// The step in XProf's own format, for its pages: DIR/plugins/profile/RUN/HOST.xplane.pb, one
// file per host whose devices were recorded.
//
//   /device:TPU:N    one per recorded device, N as JAX numbers it: Steps, XLA Modules, XLA Ops
//                    (the main stream, loops around their bodies), Async XLA Ops (what is in
//                    flight beside it), counters; with the nominal rates that rooflines need
//   /host:CPU        how busy arrays and HBM are, and what memory is allocated when
//   /host:metadata   the program by name
//
// Times are exact there, in picoseconds. FLOPs and bytes are those of one execution.
#ifndef TPUSIM_SIM_RESULTS_TRACE_XPLANE_H_
#define TPUSIM_SIM_RESULTS_TRACE_XPLANE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "configs/topology.h"
#include "models/isa/program_info.h"
#include "sim/timeline.h"

namespace tpusim::results {

// `run` is the name that XProf lists. Error: a folder or file that cannot be written; then none
// is written.
absl::Status WriteXPlanes(const std::string& folder, const std::string& run,
                          const configs::Config& config, const isa::ProgramInfo& info,
                          const sim::Timeline& timeline);

// Checks before the simulation begins that the files can be written.
absl::Status CheckXPlaneFolder(const std::string& folder);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_XPLANE_H_
