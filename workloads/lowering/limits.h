// Limits of effort of lowering (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_LOWERING_LIMITS_H_
#define TPUSIM_WORKLOADS_LOWERING_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::lowering::limits {

inline constexpr Limit kRecurrences{
    "lowering.recurrences", 8, "distances",
    "distances at which instructions recur that are tried as loops: a program has few kinds of "
    "layers"};
inline constexpr Limit kPlacesBeside{
    "lowering.places_beside", 16, "operations without a source line",
    "users and operands that are searched for the line of an operation that has none"};

}  // namespace tpusim::lowering::limits

#endif  // TPUSIM_WORKLOADS_LOWERING_LIMITS_H_
