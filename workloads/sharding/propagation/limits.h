// Limits of effort of propagation (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_SHARDING_PROPAGATION_LIMITS_H_
#define TPUSIM_WORKLOADS_SHARDING_PROPAGATION_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::sharding::limits {

inline constexpr Limit kIndexOperations{
    "sharding.index_operations", 50, "values",
    "operations between an iota and the indices of a gather: JAX writes about ten"};

}  // namespace tpusim::sharding::limits

#endif  // TPUSIM_WORKLOADS_SHARDING_PROPAGATION_LIMITS_H_
