// Limits of the walk through a kernel.
#ifndef TPUSIM_WORKLOADS_MOSAIC_LIMITS_H_
#define TPUSIM_WORKLOADS_MOSAIC_LIMITS_H_

#include <cstdint>

namespace tpusim::mosaic {

// Points of a grid.
inline constexpr int64_t kMostPoints = int64_t{1} << 22;
// Operations that are walked, one more for every so many points at which they are.
inline constexpr int64_t kMostOperations = int64_t{1} << 20, kPointsOfAnOperation = 1024;
// Passes of a loop at all points that are walked by themselves, and operations on the way.
inline constexpr int64_t kMostPasses = int64_t{1} << 16, kMostEvaluated = int64_t{1} << 18;

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_LIMITS_H_
