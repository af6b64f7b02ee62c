// Values out of nothing, and ops that must see all of their data.
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

// Constants and iota: any device can make any part.
absl::StatusOr<ShardingRule> Created(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    Tie(rule, instruction.shape().dims[d], FactorKind::kPassThrough, {&rule.results[0][d]});
  }
  return rule;
}

// Everybody does all of it (a random generator's state advances by the whole).
absl::StatusOr<ShardingRule> Whole(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    for (size_t d = 0; d < rule.operands[i].size(); ++d) {
      Tie(rule, instruction.operand(i)->shape().dims[d], FactorKind::kNeedReplication,
          {&rule.operands[i][d]});
    }
  }
  size_t leaf = 0;
  const auto whole = [&](const hlo::Shape& shape) {
    for (int64_t d = 0; d < shape.rank(); ++d) {
      Tie(rule, shape.dims[d], FactorKind::kNeedReplication, {&rule.results[leaf][d]});
    }
    ++leaf;
  };
  if (instruction.shape().IsTuple()) {
    for (const hlo::Shape& shape : instruction.shape().tuple) whole(shape);
  } else {
    whole(instruction.shape());
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
