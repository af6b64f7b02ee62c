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
// Three things the compiler never makes windowed, however large (compiler.windowed_einsum_*):
// groups whose size is no multiple of four, or above 32; groups that are all of a plane of 2x2
// chips; anything on slices whose permutes are synchronous.
//
// The size of the slice plays no part: along rings the compiler has them on 2x2x1 to 8x8x16 of v5p
// and 8x16 and 16x16 of v6e. One limit is ours: on more than 16 chips, groups whose members are not
// neighbours. The compiler does window those (seen on 64 chips of v5p); with their permutes no two
// devices of a slice are alike any more, and a step of many layers takes minutes to simulate.
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
