// Each result element from the same element of every operand.
#include <algorithm>

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

// Between types of different widths the narrow one has a minor dimension more: the
// parts of one wide element, which stay together.
absl::StatusOr<ShardingRule> BitcastConvert(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  TensorFactors& from = rule.operands[0];
  TensorFactors& to = rule.results[0];
  const hlo::Shape& narrow =
      from.size() > to.size() ? instruction.operand(0)->shape() : instruction.shape();
  for (size_t d = 0; d < std::min(from.size(), to.size()); ++d) {
    Tie(rule, narrow.dims[d], FactorKind::kPassThrough, {&from[d], &to[d]});
  }
  if (from.size() != to.size()) {
    Tie(rule, narrow.dims.back(), FactorKind::kNeedReplication,
        {from.size() > to.size() ? &from.back() : &to.back()});
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
