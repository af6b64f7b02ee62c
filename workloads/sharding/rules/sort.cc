// Sorting and the largest k.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

absl::StatusOr<ShardingRule> Sort(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const int64_t along = hlo::OnlyDimension(instruction);
  const std::vector<int64_t>& dims = instruction.operand(0)->shape().dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const bool sorted = static_cast<int64_t>(d) == along;
    const int32_t factor =
        rule.AddFactor(dims[d], sorted ? FactorKind::kNeedReplication : FactorKind::kPassThrough);
    for (TensorFactors& operand : rule.operands) operand[d] = {factor};
    for (TensorFactors& result : rule.results) result[d] = {factor};
  }
  return rule;
}

// operand -> (values, indices), along the last dimension. A split one is searched
// shard by shard, and the candidates are searched again.
absl::StatusOr<ShardingRule> TopK(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<int64_t>& dims = instruction.operand(0)->shape().dims;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const int32_t factor = rule.AddFactor(dims[d]);
    rule.operands[0][d] = {factor};
    for (TensorFactors& result : rule.results) result[d] = {factor};
  }
  Tie(rule, dims.back(), FactorKind::kPermutation, {&rule.operands[0].back()});
  const int64_t k = hlo::Leaves(instruction.shape())[0]->dims.back();
  if (k != 1) {
    const int32_t factor = rule.AddFactor(k, FactorKind::kNeedReplication);
    for (TensorFactors& result : rule.results) result.back() = {factor};
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
