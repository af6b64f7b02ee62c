// Slices whose place is data.
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

// A dimension of which a part is taken is needed whole.
absl::StatusOr<ShardingRule> DynamicSlice(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    const int64_t in = instruction.operand(0)->shape().dims[d], out = instruction.shape().dims[d];
    if (in == out) {
      Tie(rule, in, FactorKind::kPassThrough, {&rule.operands[0][d], &rule.results[0][d]});
    } else {
      Tie(rule, in, FactorKind::kNeedReplication, {&rule.operands[0][d]});
      Tie(rule, out, FactorKind::kNeedReplication, {&rule.results[0][d]});
    }
  }
  return rule;
}

// A dimension of which a part is written stays split if the part is in one shard: one element is,
// of several the operation decides. Every device needs the whole update.
absl::StatusOr<ShardingRule> DynamicUpdateSlice(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    const int64_t size = instruction.shape().dims[d];
    const int64_t update = instruction.operand(1)->shape().dims[d];
    if (size == update) {
      Tie(rule, size, FactorKind::kPassThrough,
          {&rule.operands[0][d], &rule.operands[1][d], &rule.results[0][d]});
    } else {
      Tie(rule, size, update == 1 ? FactorKind::kPassThrough : FactorKind::kPermutation,
          {&rule.operands[0][d], &rule.results[0][d]});
      Tie(rule, update, FactorKind::kNeedReplication, {&rule.operands[1][d]});
    }
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
