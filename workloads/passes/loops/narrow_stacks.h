// Stacks that a loop takes slices of in a narrower type are narrow before it.
//
// A scan over float32 weights that computes in bfloat16 converts the slice of every layer. The
// conversion of the whole stack is the same work once, the loop then reads half of the bytes, and a
// stack whose dimensions lie otherwise is copied narrow. So the TPU compiler has the weights of
// every train step that was compiled with it, those of the forward and of the backward loop alike.
#ifndef TPUSIM_WORKLOADS_PASSES_LOOPS_NARROW_STACKS_H_
#define TPUSIM_WORKLOADS_PASSES_LOOPS_NARROW_STACKS_H_

#include "workloads/hlo/transforms/loop_carries.h"

namespace tpusim::passes {

// In the body: conversions of slices become slices of the converted stack, which is then left to
// HoistInvariants. Whether there was any.
bool NarrowStacks(const hlo::LoopCarry& carry);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LOOPS_NARROW_STACKS_H_
