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
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_PROFIT_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_PROFIT_H_

#include <string>

#include "absl/status/statusor.h"
#include "workloads/cost/cost_model.h"
#include "workloads/passes/collectives/windowed_einsum_match.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

struct WindowedEinsumProfit {
  bool pays = false;
  std::string reason;
};

absl::StatusOr<WindowedEinsumProfit> ProfitOf(const WindowedEinsum& einsum,
                                              const cost::CollectiveGroups& groups,
                                              const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_PROFIT_H_
