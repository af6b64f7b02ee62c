#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/reasons.h"

namespace tpusim::passes {

absl::StatusOr<bool> FlattenFusions(hlo::Module& module, const PassContext& context) {
  std::unordered_set<const hlo::Computation*> of_fusions;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      if (i->opcode() == hlo::Opcode::kFusion) of_fusions.insert(i->called()[0]);
    }
  }
  const int64_t flattened = module.InlineCalls([&](const hlo::Instruction& i) {
    return i.opcode() == hlo::Opcode::kFusion && of_fusions.contains(i.parent());
  });
  if (flattened > 0) {
    context.records.Add(reasons::kFlattened, module.name(), {{"count", flattened}});
  }
  return flattened > 0;
}

}  // namespace tpusim::passes
