// Passes that move work out of loops and into them, where it costs less.
//
// Which values a loop keeps, how often it runs and which stacks it fills are facts
// (hlo/analysis/loops.h, loop_stacks.h); what is moved follows the TPU compiler, as described
// below.
//
// The room answers which work runs once instead of in each iteration; `HoistInvariants` is its
// entry point, SinkInitializers the pass in the other direction.
#ifndef TPUSIM_WORKLOADS_PASSES_LOOPS_LOOPS_H_
#define TPUSIM_WORKLOADS_PASSES_LOOPS_LOOPS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/transforms/loop_carries.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Computes loop-invariant values once, before the loop; returns whether there were any.
//
// It hoists kernels: matmuls, reduces, elementwise work and the like on arrays that the loop only
// reads. It leaves inside scalars (the scalar core has time), operations that are free where they
// are used (broadcasts, iotas, reshapes, slices), collectives, random numbers, values behind an
// optimization barrier, and results that take more memory than what they are computed from: they
// would live as long as the loop.
absl::StatusOr<bool> HoistInvariants(hlo::Module& module, const PassContext& context);

// Converts stacks before the loop of which it converts slices to a narrower type; returns whether
// there were any. `trips` is how often the loop runs.
//
// A scan over float32 weights that computes in bfloat16 converts the slice of every layer. The
// conversion of the whole stack is the same work once, the loop then reads half of the bytes, and a
// stack whose dimensions lie otherwise is copied narrow. So the TPU compiler has the weights of
// every train step that was compiled with it, those of the forward and of the backward loop alike.
//
// In the body, conversions of slices become slices of the converted stack; HoistInvariants moves
// that out.
bool NarrowStacks(const hlo::LoopCarry& carry, int64_t trips);

// Removes the initial constant of accumulators and stacks of loops.
//
// A stack that the loop writes from end to end (hlo/analysis/loop_stacks.h), such as the ys of a
// scan, needs no initial value at all. An accumulator that starts as broadcast(0) would be filled
// in HBM by a kernel of its own. Instead the loop is given memory that nothing wrote, and its body
// reads select(first iteration, 0, accumulator), which fuses into the operation that adds to it.
// The TPU compiler does the same: it leaves an AllocateBuffer before the loop, and for accumulators
// a select in the body's fusion.
//
// The pass takes loops that count (hlo::LoopFacts::counter) and run at least once, and
// accumulators that the body reads in elementwise operations only and replaces, or stacks.
absl::StatusOr<bool> SinkInitializers(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LOOPS_LOOPS_H_
