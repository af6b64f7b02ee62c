// Limits of effort of the analyses of modules (configs/limit.h). A value that is not evaluated
// counts as depending on data.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_LIMITS_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::hlo::limits {

inline constexpr Limit kKnownElements{"known-values.elements", 1 << 22, "arrays",
                                      "elements of an array that is evaluated"};
inline constexpr Limit kKnownDepth{
    "known-values.depth", 64, "values",
    "operations, loops and calls through which a value is followed to constants"};
// A value that is used twice is evaluated twice.
inline constexpr Limit kKnownOperations{"known-values.operations", 4096, "values",
                                        "operations that are evaluated for one value"};
inline constexpr Limit kIndexOperations{
    "loops.index_operations", 256, "indices",
    "operations that are followed from an index to the counter of a loop"};

}  // namespace tpusim::hlo::limits

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_LIMITS_H_
