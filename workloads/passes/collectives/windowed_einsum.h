// Windowed einsums: products that compute with one shard while the next one travels.
//
// An all-gather before a matrix product, or a reduce-scatter behind it, exposes all of its time.
// As a windowed einsum (collective matmul) the product is computed in steps, shard by shard, and
// collective-permutes move shards around the ring of the group meanwhile:
//
//   gather     the shards of the gathered operand pass by: a step multiplies the one that is here.
//              Was it gathered along a contracted dimension, a step adds to the whole result;
//              along a free one, a step makes a part of it.
//   scatter    sums that begin elsewhere pass by: a step adds this device's part to the one that
//              is here. At the end every device has its own.
//
// Both ways around the ring at once: two shards or sums are here at a time, and half as many steps
// do as the group has members. A gather takes one permute ahead of the steps, a scatter one behind
// them. Two steps are one iteration of a loop, so that a shard is received while its predecessor is
// still read; a group of four has no loop.
//
// Which products: those that the partitioner gave a collective, over groups that also split the
// product's work. The gathered shard has no second all-gather: a weight that forward and backward
// pass gather is gathered. And it must pay (windowed_einsum_profit.h).
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> MakeWindowedEinsums(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_H_
