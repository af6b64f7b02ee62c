// Numbers that cannot be, caught in every run.
#ifndef TPUSIM_SIM_RESULTS_REPORT_INVARIANTS_H_
#define TPUSIM_SIM_RESULTS_REPORT_INVARIANTS_H_

#include "absl/status/status.h"
#include "configs/config.h"
#include "models/isa/program_info.h"
#include "sim/results/report/report.h"
#include "sim/timeline.h"

namespace tpusim::results {

// Invariants of every run: no figure of a report contradicts another. No step and no collective
// beats a bound, no utilization passes 1, no peak passes what there is, parts fit into the whole
// (busy times, scopes and operations into the step, arrays into the peak), bytes sent on a link
// arrive at its end. `received[d]` of a device counts what came in over links of direction d, so it
// is compared with `sent[d]` of the neighbour on the opposite side.
absl::Status CheckInvariants(const configs::Config& config, const isa::ProgramInfo& info,
                             const sim::Timeline& timeline, const Report& report);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_INVARIANTS_H_
