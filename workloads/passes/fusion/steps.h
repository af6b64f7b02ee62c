// The steps of fusion, each over a plan, and what makes fusions of it.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_STEPS_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_STEPS_H_

#include "configs/record.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

// Rules on what may run as one kernel, whatever it costs.
//
// A kernel is built around one demanding operation, its hero: a product, a reduction,
// an update in place, or none. What comes before a hero is computed block by block on
// the way in. What comes after it must follow the hero's result element by element: a
// block of the result is all that there is at that time. Only a reduction may collect
// what a product makes, across the blocks. What a reduction makes is stored, and a vector
// that is broadcast is read, unless the two spread a result over the row that it is of and a
// block holds the row whole (kernels/view/whole_rows.h). Slices, pads and concatenations are of
// arrays in memory, or of the whole kernel's result. So the TPU compiler has it in every program
// that it was seen to compile (validation/compiler).
//
// Each function returns why not, or null if nothing speaks against it. A kernel has at most
// compiler.fusion_most_operands operands: each needs windows in VMEM.

// May `consumer` compute all of `producer` for itself?
const char* WhyNotInline(const Plan& plan, int producer, int consumer);
// May one kernel make the results of both, `consumer` reading roots of `producer`
// where they are made?
const char* WhyNotFollow(const Plan& plan, int producer, int consumer);
// May one kernel make the results of both, which only read the same array `shared`?
const char* WhyNotSiblings(const Plan& plan, int a, int b, int shared);

// Producers that are computed in the kernels that use them.
//
// A value that is stored is written once and read by every kernel that uses it; one that
// is not is computed in each of them from what it is made of. The largest gain goes
// first, since a decision closes others: work that hangs on a product either follows the
// product that makes its input or leads into the next one.
//
// Returns whether anything was merged. All groups of the plan have one result.
bool InlineProducers(Plan& plan, const Records& records);

// Kernels with several results.
//
// Two kernels become one where the second follows what the first makes element by
// element (the optimizer's new moments and parameters, the maximum of every row of a
// product), or where both run over the same array (the two sums of mean and variance).
// What they share is then read once, or not at all.
//
// Returns whether anything was joined. All groups of the plan have one result before.
bool JoinResults(Plan& plan, const Records& records);

// Replaces results by values that the kernel has computed anyway and that serve its users better.
//
// A kernel that makes the scores of attention, subtracts their maximum and sums up their
// exponentials has the exponentials: storing these instead of the scores spares the kernels behind
// it the subtraction, the exponential and the maxima.
//
// Returns whether any kernel has other results than before.
bool ReuseResults(Plan& plan, const Records& records);

// Puts a fusion in the place of every group of the plan that has more than one instruction: kOutput
// around a product, else kLoop; a group of several results makes a tuple. Returns whether there was
// such a group.
bool BuildFusions(hlo::Computation& computation, const Plan& plan);

// Scatters into an array that is the same everywhere make it themselves.
//
// The table of zeros that the gradients of an embedding are added to would be written by a kernel
// of its own and then read. The TPU compiler has the broadcast inside the scatter's fusion (of kind
// kCustom): embedding_gradient and train steps, compiled for v5e and v6e.
//
// Returns whether there was one.
bool FuseInitialScatters(hlo::Computation& computation, const Records& records);

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_STEPS_H_
