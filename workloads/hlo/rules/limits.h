// Limits of effort of the evaluation of scalars (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_HLO_RULES_LIMITS_H_
#define TPUSIM_WORKLOADS_HLO_RULES_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::hlo::limits {

inline constexpr Limit kValueDepth{"hlo.value_depth", 64, "scalars",
                                   "operations inside of one another that make a scalar"};
// A value that is used twice is computed twice.
inline constexpr Limit kValueSteps{"hlo.value_steps", 4096, "scalars",
                                   "operations that make a scalar"};

}  // namespace tpusim::hlo::limits

#endif  // TPUSIM_WORKLOADS_HLO_RULES_LIMITS_H_
