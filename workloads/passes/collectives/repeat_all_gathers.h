// An all-gather of weights that are needed again much later is done again then.
//
// The forward pass gathers the weights of a layer, and so does the backward pass: to keep them
// would hold all layers in memory whole. The partitioner gathers a value once for all its uses.
// Here the uses of such an all-gather are followed in the order in which they come; where the next
// one is much nearer to the end of the program than the last one was, a new all-gather serves it
// and those after it.
//
// How near an instruction is to the end is its height: 0 for what nothing uses, else at least one
// more than that of each user (XLA adds one for every user that does not raise it). The TPU
// compiler lets 100 lie between uses of one all-gather (compiler.all_gather_reuse_distance):
// in a decoder of two layers the backward pass finds the weights of the last MLP and of the output
// layer still there and gathers all others again.
//
// Only of what products multiply; indices of lookups are gathered once. All-gathers that the
// program itself states are left alone.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REPEAT_ALL_GATHERS_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REPEAT_ALL_GATHERS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> RepeatAllGathers(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REPEAT_ALL_GATHERS_H_
