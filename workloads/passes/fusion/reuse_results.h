// What a kernel has computed anyway is stored instead of what others would compute it from.
//
// A kernel that makes the scores of attention, subtracts their maximum and sums up their
// exponentials has the exponentials: storing these instead of the scores spares the kernels behind
// it the subtraction, the exponential and the maxima.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_REUSE_RESULTS_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_REUSE_RESULTS_H_

#include "workloads/passes/fusion/explanation.h"
#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

// Returns whether any kernel has other results than before.
bool ReuseResults(Plan& plan, Explanation& explanation);

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_REUSE_RESULTS_H_
