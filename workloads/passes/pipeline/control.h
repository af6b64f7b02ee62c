// Computations that a device runs as control flow.
#ifndef TPUSIM_WORKLOADS_PASSES_CONTROL_H_
#define TPUSIM_WORKLOADS_PASSES_CONTROL_H_

#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// The entry and the bodies, conditions and branches that it reaches; no
// reducers, comparators or fused computations. Callers before callees.
std::vector<hlo::Computation*> ControlComputations(const hlo::Module& module);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_CONTROL_H_
