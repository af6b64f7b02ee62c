#include "workloads/search/program_key.h"

#include <map>
#include <unordered_map>

#include "configs/digest.h"

namespace tpusim::search {

std::string ProgramKey(const hlo::Module& module, const std::vector<int64_t>& device_of_partition) {
  configs::Digest digest;
  digest.Add(device_of_partition);
  std::unordered_map<const hlo::Computation*, int64_t> computations;
  std::unordered_map<const hlo::Instruction*, int64_t> values;
  for (const hlo::Computation* computation : module.PostOrder()) {
    computations.emplace(computation, std::ssize(computations));
    for (const hlo::Instruction* i : computation->PostOrder()) {
      values.emplace(i, std::ssize(values));
      digest.Add(static_cast<int>(i->opcode()));
      digest.Add(i->shape().ToString());
      digest.Add(i->AttributeBytes());
      const auto& attributes = i->attrs().frontend_attributes().map();
      for (const auto& [name, value] :
           std::map<std::string, std::string>(attributes.begin(), attributes.end())) {
        digest.Add(name);
        digest.Add(value);
      }
      for (const hlo::Instruction* operand : i->operands()) digest.Add(values.at(operand));
      for (const hlo::Computation* called : i->called()) digest.Add(computations.at(called));
    }
    digest.Add(values.at(computation->root()));
  }
  return digest.Text();
}

}  // namespace tpusim::search
