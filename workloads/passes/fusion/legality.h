// What may run as one kernel, whatever it costs.
//
// A kernel is built around one demanding operation, its hero: a product, a reduction,
// an update in place, or none. What comes before a hero is computed block by block on
// the way in. What comes after it must follow the hero's result element by element: a
// block of the result is all that there is at that time. Only a reduction may collect
// what a product makes, across the blocks. What a reduction makes is stored, and a vector
// that is broadcast is read, unless the two spread a result over the row that it is of and a
// block holds the row whole (kernels/whole_rows.h). Slices, pads and concatenations are of
// arrays in memory, or of the whole kernel's result. So the TPU compiler has it in every program
// that it was seen to compile (validation/compiler).
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_LEGALITY_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_LEGALITY_H_

#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

// Each returns why not, or null if nothing speaks against it. A kernel has at most
// compiler.fusion_most_operands operands: each needs windows in VMEM.

// May `consumer` compute all of `producer` for itself?
const char* WhyNotInline(const Plan& plan, int producer, int consumer);
// May one kernel make the results of both, `consumer` reading roots of `producer`
// where they are made?
const char* WhyNotFollow(const Plan& plan, int producer, int consumer);
// May one kernel make the results of both, which only read the same array `shared`?
const char* WhyNotSiblings(const Plan& plan, int a, int b, int shared);

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_LEGALITY_H_
