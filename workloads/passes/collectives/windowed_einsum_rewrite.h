// Writes a product and its collective as a windowed einsum.
//
// Members of a group are numbered p = 0 .. n-1 in its order; h = n/2 steps k = 0 .. h-1.
//
//   gather     the shard of p+k comes down the ring, that of p-1-k up (the first of these with the
//              permute ahead). A step multiplies both; then each goes on by one.
//   scatter    the sum for p-(h-1-k) comes down the ring, that for p+1+(h-1-k) up, each begun by
//              the device h-1 steps away as zero. A step moves each on by one, computes this
//              device's part of both meanwhile, and adds it. The last sum that came up is for p+1:
//              one more permute, and both are added. (Without a loop the first step moves nothing,
//              as there is no sum yet.)
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_REWRITE_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_REWRITE_H_

#include <cstdint>
#include <vector>

#include "workloads/passes/collectives/windowed_einsum_match.h"

namespace tpusim::passes {

inline constexpr int64_t kStepsPerIteration = 2;
// Of the form itself: both ways at once, and whole iterations.
inline constexpr int64_t kMembersMultiple = 2 * kStepsPerIteration;

// Groups of partitions, all of one size that is a multiple of kMembersMultiple. Permutes take
// channels from `channel` on; returns the next free one. The product and the collective go.
int64_t RewriteWindowedEinsum(const WindowedEinsum& einsum,
                              const std::vector<std::vector<int64_t>>& groups, int64_t channel);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_REWRITE_H_
