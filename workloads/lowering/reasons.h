// What the lowering takes to be so (configs/record.h).
#ifndef TPUSIM_WORKLOADS_LOWERING_REASONS_H_
#define TPUSIM_WORKLOADS_LOWERING_REASONS_H_

#include "configs/record.h"

namespace tpusim::lowering::reasons {

inline constexpr Reason kBranchStated{"lowering.branch-stated", Action::kAssumed,
                                      "{conditional} takes branch {branch}, as stated"};
inline constexpr Reason kBranchLongest{
    "lowering.branch-longest", Action::kAssumed,
    "{conditional} takes branch {branch}, the longest: its predicate is data"};
inline constexpr Reason kSendsToNext{
    "lowering.sends-to-next", Action::kAssumed,
    "{kernel} sends {bytes} bytes from every device: taken as sent to the next partition"};

}  // namespace tpusim::lowering::reasons

#endif  // TPUSIM_WORKLOADS_LOWERING_REASONS_H_
