#include <fmt/format.h>

#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/donation.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes {

absl::StatusOr<bool> StateArguments(hlo::Module& module, const PassContext& context) {
  const std::vector<hlo::Instruction*> arguments = module.entry()->parameters();
  const std::vector<std::string>& memories = context.stated->argument_memories;
  if (!memories.empty() && memories.size() != arguments.size()) {
    return UserError(fmt::format("the workload names memory kinds for {} arguments and has {}",
                                 memories.size(), arguments.size()));
  }
  bool changed = false;
  for (size_t n = 0; n < memories.size(); ++n) {
    hlo::Shape shape = arguments[n]->shape();
    if (!hlo::IsHostMemoryKind(memories[n]) || shape.IsTuple() || hlo::OnHost(shape)) continue;
    shape.layout.memory_space = hlo::kHostSpace;
    arguments[n]->set_shape(std::move(shape));
    context.records.Add(reasons::kArgumentOnHost, arguments[n]->name(), {{"memory", memories[n]}});
    changed = true;
  }
  if (context.stated->donate && hlo::DonateArguments(module)) {
    context.records.Add(reasons::kArgumentsDonated, module.entry()->name(),
                        {{"count", static_cast<int64_t>(arguments.size())}});
    changed = true;
  }
  return changed;
}

}  // namespace tpusim::passes
