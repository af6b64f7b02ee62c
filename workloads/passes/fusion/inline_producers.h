// Producers that are computed in the kernels that use them.
//
// A value that is stored is written once and read by every kernel that uses it; one that
// is not is computed in each of them from what it is made of. The largest gain goes
// first, since a decision closes others: work that hangs on a product either follows the
// product that makes its input or leads into the next one.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_INLINE_PRODUCERS_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_INLINE_PRODUCERS_H_

#include "workloads/passes/fusion/explanation.h"
#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

// Returns whether anything was merged. All groups of the plan have one result.
bool InlineProducers(Plan& plan, Explanation& explanation);

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_INLINE_PRODUCERS_H_
