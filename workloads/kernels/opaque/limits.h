// Limits of the search for tables of a kernel (configs/limit.h): a partition that is not examined
// counts as one of those that were.
#ifndef TPUSIM_WORKLOADS_KERNELS_OPAQUE_LIMITS_H_
#define TPUSIM_WORKLOADS_KERNELS_OPAQUE_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::kernels::limits {

inline constexpr Limit kTablePartitions{
    "kernels.table_partitions", 256, "partitions",
    "partitions of which each has its tables computed, because they may differ"};
inline constexpr Limit kTableOperands{"kernels.table_operands", 16, "operands",
                                      "operands of a kernel that are searched for tables"};

}  // namespace tpusim::kernels::limits

#endif  // TPUSIM_WORKLOADS_KERNELS_OPAQUE_LIMITS_H_
