#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/compiled/compiled.h"

namespace tpusim::passes {

absl::StatusOr<bool> FlattenFusions(hlo::Module& module, const PassContext&) {
  std::unordered_set<const hlo::Computation*> of_fusions;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      if (i->opcode() == hlo::Opcode::kFusion) of_fusions.insert(i->called()[0]);
    }
  }
  return module.InlineCalls([&](const hlo::Instruction& i) {
    return i.opcode() == hlo::Opcode::kFusion && of_fusions.contains(i.parent());
  }) > 0;
}

}  // namespace tpusim::passes
