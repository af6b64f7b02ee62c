// Limits of effort of transformations of modules (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_LIMITS_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::hlo::limits {

inline constexpr Limit kSharedComputation{
    "hlo.shared_computation", 16, "operations",
    "instructions of a reducer or comparator that is compared with others: they have a handful"};

}  // namespace tpusim::hlo::limits

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_LIMITS_H_
