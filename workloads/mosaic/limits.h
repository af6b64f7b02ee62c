// Limits of effort of the analysis of kernel bodies (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_MOSAIC_LIMITS_H_
#define TPUSIM_WORKLOADS_MOSAIC_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::mosaic::limits {

// Beyond these there is no price: an error says so.
inline constexpr int64_t kMostPoints = int64_t{1} << 22;  // of a grid
// Operations that are walked, one more for every so many points at which they are.
inline constexpr int64_t kMostOperations = int64_t{1} << 20, kPointsOfAnOperation = 1024;

inline constexpr Limit kLoopPasses{
    "mosaic.loop_passes", int64_t{1} << 16, "loops",
    "passes of a loop at all points that are examined one by one; the others are taken alike"};
inline constexpr Limit kLoopOperations{
    "mosaic.loop_operations", int64_t{1} << 18, "loops",
    "operations that are evaluated to tell the passes of a loop apart"};
inline constexpr Limit kPredicates{"mosaic.predicates", 18, "predicates",
                                   "predicates on data whose combinations are compared"};
inline constexpr Limit kOpenPredicates{
    "mosaic.open_predicates", 8, "predicates",
    "predicates on data in a loop, from outside of it, whose combinations are compared"};

}  // namespace tpusim::mosaic::limits

#endif  // TPUSIM_WORKLOADS_MOSAIC_LIMITS_H_
