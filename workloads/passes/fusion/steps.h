// The steps of fusion, each over a plan, and what makes fusions of it.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_STEPS_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_STEPS_H_

#include "configs/record.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

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

// What a kernel has computed anyway is stored instead of what others would compute it from.
//
// A kernel that makes the scores of attention, subtracts their maximum and sums up their
// exponentials has the exponentials: storing these instead of the scores spares the kernels behind
// it the subtraction, the exponential and the maxima.
//
// Returns whether any kernel has other results than before.
bool ReuseResults(Plan& plan, const Records& records);

// From a plan to fusion instructions.
//
// Puts a fusion in the place of every group of the plan that is more than one
// instruction: kOutput around a product, kInput around a reduction, else kLoop; with
// several results it makes a tuple. Returns whether there was one.
bool BuildFusions(hlo::Computation& computation, const Plan& plan);

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_STEPS_H_
