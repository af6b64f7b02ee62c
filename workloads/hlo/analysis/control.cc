#include "workloads/hlo/analysis/control.h"

#include <unordered_set>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

std::vector<Computation*> ControlComputations(const Module& module) {
  std::vector<Computation*> found = {module.entry()};
  std::unordered_set<Computation*> seen = {module.entry()};
  for (size_t n = 0; n < found.size(); ++n) {
    for (Instruction* i : found[n]->PostOrder()) {
      if (!IsControlFlow(i->opcode())) continue;
      for (Computation* c : i->called()) {
        if (seen.insert(c).second) found.push_back(c);
      }
    }
  }
  return found;
}

}  // namespace tpusim::hlo
