// Makes one reduce-scatter of many: the gradients of sharded weights.
//
// The TPU compiler joins all-reduces and slices after it has combined the all-reduces, and combines
// only as much as its kernel, which sums and slices at once, can hold in VMEM: all operands, and of
// every piece that is left to a device four buffers, two on the way in and two on the way out, in
// less than 15/16 of the scoped memory. Compiled for v5e, that is 7 MiB (not 7.5) over 4 devices
// and 9.5 (not 10) over 8; for v6e, with twice as much, 14.5 (not 15) and 19.5 (not 20). In the
// order of the program each joins the first that has room; along which dimension is all one, so
// bitcasts bring that to the front here.
//
// None are combined where two cores are one device (v5p), nor where SparseCores run them; and only
// those that the partitioner made: one that the program states is no all-reduce and slice.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_REDUCE_SCATTERS_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_REDUCE_SCATTERS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> CombineReduceScatters(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_REDUCE_SCATTERS_H_
