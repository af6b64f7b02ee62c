#include "workloads/hlo/analysis/compiled.h"

#include <algorithm>

namespace tpusim::hlo {

bool IsCompiled(const Module& module) {
  if (module.entry() == nullptr || module.entry()->schedule().empty()) return false;
  const auto emitted = [](const Instruction* i) {
    return i->attrs().backend_config().find("\"flag_configs\"") != std::string::npos;
  };
  for (const Computation* computation : module.computations()) {
    const std::vector<Instruction*> all = computation->instructions();
    if (std::any_of(all.begin(), all.end(), emitted)) return true;
  }
  return false;
}

}  // namespace tpusim::hlo
