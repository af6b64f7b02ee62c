// Windowed einsums (collectives.h) in steps: which products could be one, whether that pays, and
// the change itself.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/cost/cost_model.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// Products with a collective that could become windowed einsums.
struct WindowedEinsum {
  enum class Exchange { kGatherContracted, kGatherFree, kScatter };
  Exchange exchange = Exchange::kScatter;
  hlo::Instruction* dot = nullptr;
  hlo::Instruction* collective = nullptr;  // the all-gather or the reduce-scatter
  // The dimension in question: of which operand, its number there, and in the operand that is
  // gathered along a contracted dimension the number of the same in the other one; else its number
  // in the result.
  size_t operand = 0;
  int64_t dim = 0;
  int64_t other_dim = 0;
  // Another product needs the operand gathered in the same way: one all-gather serves both.
  bool shared = false;

  // The whole array that a collective makes of shards, or shards of.
  const hlo::Shape& whole() const {
    return (exchange == Exchange::kScatter ? dot : collective)->shape();
  }
};

// Returns the windowed einsum that `dot` could become.
//
// A product of activations, split over one axis, by weights that another axis shares has two
// collectives or three: the one of the largest array is windowed, and the others are done whole. If that one does not pay or is shared, none is. Of equal sizes a
// scatter comes first, then the gather of the right operand. The gather of the left one along a
// dimension that is not contracted is windowed only where it is alone, and none along such a
// dimension where the result is a partial sum that is all-reduced.
//
// Found by compiling such products ahead of time for v5p 4x4x8 and 2x4x4, meshes of 16x8, 8x16,
// 32x4, 16x2 and 2x16: x [b,s,d] by w [d,f] forward, both gradients, in either order of operands,
// 32 MiB to 2 GiB on one side of 56 to 448 MiB on the other. Left and right are those after a
// transpose of the result is gone: it exchanges the operands.
//
// Whether an operand is shared: another product would have it in the same sharding
// (hlo::annotations::kWantedAxes). The gradient of a product's result is multiplied by weights, contracted, and
// by activations, along columns: both are windowed.
std::optional<WindowedEinsum> MatchWindowedEinsum(hlo::Instruction* dot);

// Whether a windowed einsum pays, as the TPU compiler reckons.
//
// It compares a product of n steps, each beside the permutes of one shard each way, with the
// collective and the product one after the other:
//
//   max(compute, communication) + 2 communication / n  <  compute + communication
//
// where compute is FLOPs over the peak rate, and communication the bytes of the whole array over
// the rate of a link, both ways. That is: more than two members, and
//
//   FLOPs / bytes  >  2 / n * (peak rate / rate of links)
//
// The last ratio is the chip's (compiler.windowed_flops_per_byte), found by compiling products with
// more and more rows: for n = 4, 8 and 16, bf16, float32 and int32 the limit is the one ratio.
// The type of the elements plays no other part.
//
// Two things the compiler never makes windowed, however large (compiler.windowed_einsum_*): groups
// whose size is no multiple of four, or above 32; groups that are all of a plane of 2x2 chips.
//
// Neither the size of the slice plays a part nor where the members are: products of 0.5 to 4 times
// the limit, compiled for meshes in JAX's order and for devices in random order, are windowed above
// it and not below on 4x4x4, 4x4x8 and 8x8x8 of v4 and v5p, 8x8 and 16x16 of v6e and 4x4x4 of v7x
// (gathers and scatters; groups of 8, 12, 16 and 32). So they are on v5e 4x8, 8x8 and 16x16, where
// permutes are synchronous and nothing hides them.
struct WindowedEinsumProfit {
  bool pays = false;
  std::string reason;
};

absl::StatusOr<WindowedEinsumProfit> ProfitOf(const WindowedEinsum& einsum,
                                              const cost::CollectiveGroups& groups,
                                              const target::Target& target);

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
inline constexpr int64_t kStepsPerIteration = 2;
// Group sizes that the loop handles: both directions at once, and whole iterations.
inline constexpr int64_t kMembersMultiple = 2 * kStepsPerIteration;

// Groups of partitions, all of one size that is a multiple of kMembersMultiple. Permutes take
// channels from `channel` on; returns the next free one. The product and the collective go.
int64_t RewriteWindowedEinsum(const WindowedEinsum& einsum,
                              const std::vector<std::vector<int64_t>>& groups, int64_t channel);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_H_
