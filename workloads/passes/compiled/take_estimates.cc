#include "workloads/hlo/ir/annotations.h"
#include "workloads/kernels/tiling/stated_windows.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/reasons.h"

namespace tpusim::passes {

absl::StatusOr<bool> TakeEstimates(hlo::Module& module, const PassContext& context) {
  if (!context.stated->compiler_times) return false;
  bool changed = false;
  for (const hlo::Computation* computation : module.computations()) {
    if (computation->schedule().empty()) continue;
    for (hlo::Instruction* i : computation->instructions()) {
      const auto windows = kernels::StatedWindowsOf(*i);
      if (!windows || !windows->estimate) continue;
      hlo::annotations::kTakesEstimate.Set(i);
      context.records.Add(reasons::kEstimateTaken, i->name(),
                          {{"cycles", windows->estimate->value()}});
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
