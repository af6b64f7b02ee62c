#include "workloads/passes/pipeline/control.h"

#include <unordered_set>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {

std::vector<hlo::Computation*> ControlComputations(const hlo::Module& module) {
  std::vector<hlo::Computation*> found = {module.entry()};
  std::unordered_set<hlo::Computation*> seen = {module.entry()};
  for (size_t n = 0; n < found.size(); ++n) {
    for (hlo::Instruction* i : found[n]->PostOrder()) {
      if (i->opcode() != hlo::Opcode::kWhile && i->opcode() != hlo::Opcode::kConditional &&
          i->opcode() != hlo::Opcode::kCall) {
        continue;
      }
      for (hlo::Computation* c : i->called()) {
        if (seen.insert(c).second) found.push_back(c);
      }
    }
  }
  return found;
}

}  // namespace tpusim::passes
