#include <optional>
#include <string>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/body_cost.h"
#include "workloads/kernels/custom_cost.h"
#include "workloads/kernels/stated_time.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/annotate/written.h"
#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes {

absl::StatusOr<bool> StateKernelCosts(hlo::Module& module, const PassContext& context) {
  const std::vector<std::string> before = WrittenAttributes(module);
  const kernels::KernelTrips unknown = [](const tpusim::KernelLoop&) { return std::nullopt; };
  const kernels::KernelTrips& trips = context.stated->kernel_trips;
  kernels::SetBodyCosts(module, context.stated->partitions, trips ? trips : unknown,
                        context.target);
  const std::vector<kernels::NamedCost>& costs = context.stated->kernel_costs;
  const std::vector<std::vector<std::string>> users = kernels::SetCustomCosts(module, costs);
  for (size_t n = 0; n < costs.size(); ++n) {
    for (const std::string& call : users[n]) {
      context.records.Add(reasons::kKernelCostStated, call, {{"name", costs[n].name}});
    }
    if (!users[n].empty()) continue;
    WarnOfNoEffect(context.records, "--kernel-cost " + costs[n].name,
                   NamesOf(module, hlo::Opcode::kCustomCall), "no custom call", "custom calls");
  }
  kernels::HoldToStatedTimes(module, context.target);
  return WrittenAttributes(module) != before;
}

}  // namespace tpusim::passes
