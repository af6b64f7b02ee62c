// Limits of the search for what a kernel knows of its tables (configs/limit.h). A table that is not
// found out counts as unknown: every block is visited, which is dearer.
#ifndef TPUSIM_WORKLOADS_KERNELS_LIMITS_H_
#define TPUSIM_WORKLOADS_KERNELS_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::kernels::limits {

inline constexpr Limit kTablePartitions{
    "kernels.table_partitions", 256, "partitions",
    "partitions of which each has its tables computed, because they may differ"};
inline constexpr Limit kTableOperands{"kernels.table_operands", 16, "operands",
                                      "operands of a kernel that are searched for tables"};
inline constexpr Limit kTableElements{"kernels.table_elements", 1 << 22, "arrays",
                                      "elements of an array of which a table is computed"};
inline constexpr Limit kTableDepth{"kernels.table_depth", 64, "tables",
                                   "operations inside of one another that make a table"};
// Arrays that are used twice are computed twice.
inline constexpr Limit kTableOperations{"kernels.table_operations", 4096, "tables",
                                        "operations that make a table"};

}  // namespace tpusim::kernels::limits

#endif  // TPUSIM_WORKLOADS_KERNELS_LIMITS_H_
