// Each result element from the same element of every operand.
#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

// So are constants and iotas, of which any device can make any part.
absl::StatusOr<ShardingRule> Elementwise(const hlo::Instruction& instruction) {
  for (const hlo::Instruction* operand : instruction.operands()) {
    // A select's predicate and a clamp's bounds may be scalars.
    if (operand->shape().rank() == 0 || operand->shape().dims == instruction.shape().dims) continue;
    return NoRule(fmt::format("{} from {} to {} has no sharding rule: {}",
                              hlo::OpcodeName(instruction.opcode()), operand->shape().ToString(),
                              instruction.shape().ToString(), instruction.Describe()));
  }
  return AllAlike(instruction);
}

}  // namespace tpusim::sharding::rules
