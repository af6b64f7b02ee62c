// Loop accumulators and stacks that start from a constant are not written before the loop.
//
// A stack that the loop writes from end to end (hlo::WritesWhole), such as the ys of a scan, needs
// no initial value at all. An accumulator that starts as broadcast(0) would be filled in HBM by a
// kernel of its own. Instead the loop is given memory that nothing wrote, and its body reads
// select(first iteration, 0, accumulator), which fuses into the operation that adds to it. The TPU
// compiler does the same: it leaves an AllocateBuffer before the loop, and for accumulators a
// select in the body's fusion.
#ifndef TPUSIM_WORKLOADS_PASSES_LOOPS_SINK_INITIALIZERS_H_
#define TPUSIM_WORKLOADS_PASSES_LOOPS_SINK_INITIALIZERS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// For loops that count (hlo::CounterWithStart) and run at least once, and
// accumulators that the body reads in elementwise operations only and replaces, or stacks.
absl::StatusOr<bool> SinkInitializers(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LOOPS_SINK_INITIALIZERS_H_
