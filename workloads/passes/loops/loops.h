// Passes that take out of loops, and into them, what costs less there.
#ifndef TPUSIM_WORKLOADS_PASSES_LOOPS_LOOPS_H_
#define TPUSIM_WORKLOADS_PASSES_LOOPS_LOOPS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/transforms/loop_carries.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// What every iteration of a loop computes alike is computed once, before the loop.
//
// Worth it is a kernel: products, reduces, elementwise work and the like on arrays that the
// loop only reads. Left inside are scalars (the scalar core has time), what costs nothing
// where it is used (broadcasts, iotas, reshapes, slices), collectives, random numbers, what an
// optimization barrier holds back, and results that take more memory than what they are made
// of: they would live as long as the loop.
//
// Whether there was any.
absl::StatusOr<bool> HoistInvariants(hlo::Module& module, const PassContext& context);

// Stacks that a loop takes slices of in a narrower type are narrow before it.
//
// A scan over float32 weights that computes in bfloat16 converts the slice of every layer. The
// conversion of the whole stack is the same work once, the loop then reads half of the bytes, and a
// stack whose dimensions lie otherwise is copied narrow. So the TPU compiler has the weights of
// every train step that was compiled with it, those of the forward and of the backward loop alike.
//
// In the body: conversions of slices become slices of the converted stack, which is then left to
// HoistInvariants. Whether there was any.
bool NarrowStacks(const hlo::LoopCarry& carry, int64_t trips);

// Loop accumulators and stacks that start from a constant are not written before the loop.
//
// A stack that the loop writes from end to end (hlo/analysis/loop_stacks.h), such as the ys of a scan, needs
// no initial value at all. An accumulator that starts as broadcast(0) would be filled in HBM by a
// kernel of its own. Instead the loop is given memory that nothing wrote, and its body reads
// select(first iteration, 0, accumulator), which fuses into the operation that adds to it. The TPU
// compiler does the same: it leaves an AllocateBuffer before the loop, and for accumulators a
// select in the body's fusion.
//
// For loops that count (hlo::LoopFacts::counter) and run at least once, and
// accumulators that the body reads in elementwise operations only and replaces, or stacks.
absl::StatusOr<bool> SinkInitializers(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LOOPS_LOOPS_H_
