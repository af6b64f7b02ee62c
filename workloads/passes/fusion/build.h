// From a plan to fusion instructions.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_BUILD_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_BUILD_H_

#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

// Puts a fusion in the place of every group of the plan that is more than one
// instruction: kOutput around a product, kInput around a reduction, else kLoop; with
// several results it makes a tuple. Returns whether there was one.
bool BuildFusions(hlo::Computation& computation, const Plan& plan);

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_BUILD_H_
