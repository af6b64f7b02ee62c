// Limits of effort of the planner of memories (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_BUFFERS_LIMITS_H_
#define TPUSIM_WORKLOADS_BUFFERS_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::buffers::limits {

inline constexpr Limit kHeapPairs{
    "buffers.heap_pairs", int64_t{1} << 22, "pairs of buffers",
    "pairs that are compared before the rest is put on top: a fraction of a second. A decoder of "
    "100 layers, unrolled, has no holes left then"};

}  // namespace tpusim::buffers::limits

#endif  // TPUSIM_WORKLOADS_BUFFERS_LIMITS_H_
