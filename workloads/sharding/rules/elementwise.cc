// Each result element from the same element of every operand.
#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

absl::StatusOr<ShardingRule> Elementwise(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const hlo::Shape& shape = instruction.shape();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dims[d] == 1) continue;
    const int32_t factor = rule.AddFactor(shape.dims[d]);
    rule.results[0][d] = {factor};
    for (size_t i = 0; i < rule.operands.size(); ++i) {
      // A select's predicate and a clamp's bounds may be scalars.
      if (rule.operands[i].empty()) continue;
      if (instruction.operand(i)->shape().dims != shape.dims) {
        return NoRule(fmt::format("{} from {} to {} has no sharding rule: {}",
                                  hlo::OpcodeName(instruction.opcode()),
                                  instruction.operand(i)->shape().ToString(), shape.ToString(),
                                  instruction.Describe()));
      }
      rule.operands[i][d] = {factor};
    }
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
