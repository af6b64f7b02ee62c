// Where the analysis of modules stops looking (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_LIMITS_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::hlo::limits {

inline constexpr Limit kConstantCarries{
    "hlo.constant_carries", 16, "values",
    "loops, calls and tuples through which a constant is followed to a trip count"};

}  // namespace tpusim::hlo::limits

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_LIMITS_H_
