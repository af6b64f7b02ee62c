// Kernels with several results.
//
// Two kernels become one where the second follows what the first makes element by
// element (the optimizer's new moments and parameters, the maximum of every row of a
// product), or where both run over the same array (the two sums of mean and variance).
// What they share is then read once, or not at all.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_JOIN_RESULTS_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_JOIN_RESULTS_H_

#include "workloads/passes/fusion/explanation.h"
#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

// Returns whether anything was joined. All groups of the plan have one result before.
bool JoinResults(Plan& plan, Explanation& explanation);

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_JOIN_RESULTS_H_
