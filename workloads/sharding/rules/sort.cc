// Sorting and the largest k.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

absl::StatusOr<ShardingRule> Sort(const hlo::Instruction& instruction) {
  return AllAlike(instruction, {hlo::OnlyDimension(instruction)}, FactorKind::kNeedReplication);
}

// operand -> (values, indices), along the last dimension. A split one is searched
// shard by shard, and the candidates are searched again.
absl::StatusOr<ShardingRule> TopK(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<int64_t>& dims = instruction.operand(0)->shape().dims;
  const size_t last = dims.size() - 1;
  for (size_t d = 0; d < last; ++d) {
    Tie(rule, dims[d], FactorKind::kPassThrough, At(d, {rule.operands, rule.results}));
  }
  Tie(rule, dims[last], FactorKind::kPermutation, {&rule.operands[0].back()});
  Tie(rule, hlo::Leaves(instruction.shape())[0]->dims.back(), FactorKind::kNeedReplication,
      At(last, {rule.results}));
  return rule;
}

}  // namespace tpusim::sharding::rules
