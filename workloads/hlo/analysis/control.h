// Computations that a device runs as control flow.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_CONTROL_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_CONTROL_H_

#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The entry and the bodies, conditions and branches that it reaches; no
// reducers, comparators or fused computations. Callers before callees.
std::vector<Computation*> ControlComputations(const Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_CONTROL_H_
