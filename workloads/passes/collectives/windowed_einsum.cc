#include "workloads/passes/collectives/windowed_einsum.h"

#include "configs/status_macros.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/ring.h"
#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes {

absl::StatusOr<bool> MakeWindowedEinsums(hlo::Module& module, const PassContext& context) {
  TPUSIM_CHECK(context.cost != nullptr, "windowed einsums without costs");
  bool changed = false;
  int64_t channel = FirstFreeChannel(module);
  for (hlo::Computation* computation : context.facts->CallsOf(module).control()) {
    for (hlo::Instruction* i : hlo::Walk(computation->PostOrder())) {
      for (const WindowedEinsum& einsum : MatchWindowedEinsums(i)) {
        ASSIGN_OR_RETURN(const cost::CollectiveGroups groups,
                         context.cost->GroupsOf(*einsum.collective));
        ASSIGN_OR_RETURN(const WindowedEinsumProfit profit,
                         ProfitOf(einsum, groups, context.target));
        context.records.Add(profit.pays ? reasons::kEinsumWindowed : reasons::kEinsumKept,
                            einsum.dot->name(),
                            {{"collective", einsum.collective->name()}, {"why", profit.reason}});
        if (!profit.pays) continue;
        channel = RewriteWindowedEinsum(einsum, groups.partitions, channel);
        changed = true;
        break;  // the other matches are of the same product, which is gone
      }
    }
  }
  return changed;
}

}  // namespace tpusim::passes
