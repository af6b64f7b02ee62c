// Limits of effort of the normalisation of a module (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_SHARDING_NORMALISED_LIMITS_H_
#define TPUSIM_WORKLOADS_SHARDING_NORMALISED_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::sharding::limits {

inline constexpr Limit kConstantExpression{
    "sharding.constant_expression", 32, "expressions",
    "a larger expression is no constant that the program writes down"};

}  // namespace tpusim::sharding::limits

#endif  // TPUSIM_WORKLOADS_SHARDING_NORMALISED_LIMITS_H_
