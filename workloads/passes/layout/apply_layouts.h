// Writes chosen layouts into the module.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_APPLY_LAYOUTS_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_APPLY_LAYOUTS_H_

#include <vector>

#include "workloads/passes/layout/layout_problem.h"

namespace tpusim::passes {

// Every array gets the order of its value. Where an array is made, seen and wanted in
// different orders, copies go in, one per array and order. What every kernel makes for itself
// is made once per order. Returns whether anything changed.
bool ApplyLayouts(hlo::Module& module, const LayoutProblem& problem,
                  const std::vector<Dims>& orders);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_APPLY_LAYOUTS_H_
