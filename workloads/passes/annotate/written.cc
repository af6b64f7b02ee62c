#include "workloads/passes/annotate/written.h"

#include <fmt/format.h>

#include <map>

#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes {

std::vector<std::string> WrittenAttributes(const hlo::Module& module) {
  std::vector<std::string> written;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      const auto& attributes = i->attrs().frontend_attributes().map();
      if (attributes.empty()) continue;
      written.push_back(i->name());
      for (const auto& [key, value] : std::map(attributes.begin(), attributes.end())) {
        written.push_back(key);
        written.push_back(value);
      }
    }
  }
  return written;
}

std::vector<std::string> NamesOf(const hlo::Module& module, hlo::Opcode opcode) {
  std::vector<std::string> names;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      if (i->opcode() == opcode) names.push_back(i->name());
    }
  }
  return names;
}

void WarnOfNoEffect(const Records& records, const std::string& option,
                    const std::vector<std::string>& names, std::string_view none,
                    std::string_view several) {
  records.Add(
      reasons::kNoEffect, option,
      {{"why", names.empty() ? fmt::format("the program has {}", none)
                             : fmt::format("its {} are {}", several, fmt::join(names, ", "))}});
}

}  // namespace tpusim::passes
