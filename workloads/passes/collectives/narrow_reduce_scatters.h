// Reduce-scatters that leave too little per row, or sum integers, become all-reduces of which a
// part is taken.
//
// The TPU compiler writes sums that are split afterwards as an all-reduce and a slice and joins
// both where it can. Where the fastest dimension in memory is scattered and fewer bytes than
// the policy's least row (512) are left to a device, it does not: compiled for
// v5e, f32[128] over 8 devices, f32[16,128] over 2 along the second dimension and the biases'
// gradients of an MLP are all-reduces, which are then combined with others. Which dimension is
// fastest is known when layouts are assigned.
//
// Of those, only what the partitioner made; a reduce-scatter that the program states stays one.
// Integers are never scattered, whatever made it (s32 and s8, compiled for v5e).
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_NARROW_REDUCE_SCATTERS_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_NARROW_REDUCE_SCATTERS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> WidenNarrowReduceScatters(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_NARROW_REDUCE_SCATTERS_H_
