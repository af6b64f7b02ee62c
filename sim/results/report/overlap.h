// Overlap of collectives on the critical device: what hid them, and why the rest of them is
// exposed.
//
// The exposed time of a collective is told by what the main stream did meanwhile:
//
//   synchronous, dependency,   it waited for this collective; which of these it is the compiler
//   resource, memory,          knows (isa::WaitReason)
//   schedule
//   transfer                   it waited for another collective or copy
//   operation                  it executed an operation that kept no compute slot busy just
//                              then: its windows were on their way, or it was being launched
#ifndef TPUSIM_SIM_RESULTS_REPORT_OVERLAP_H_
#define TPUSIM_SIM_RESULTS_REPORT_OVERLAP_H_

#include <string>
#include <vector>

#include "configs/units.h"
#include "models/isa/program_info.h"
#include "sim/timeline.h"

namespace tpusim::results {

// An operation that hides a collective, or a reason why nothing does.
struct OverlapReport {
  std::string what;  // the operation; the reason
  Picoseconds time{0};
  std::string text;  // of a reason: more of it, "" where the reason says all
};

// Returns by operation, for collectives that were hidden, the operations that did most of that.
std::vector<std::vector<OverlapReport>> CoversOf(const isa::ProgramInfo& info,
                                                 const sim::Timeline& timeline);
// Returns reasons that add up to the exposed time.
std::vector<OverlapReport> ReasonsOf(const isa::CollectiveInfo& collective,
                                     const sim::OpTotals& totals);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_OVERLAP_H_
