// Reductions over windows: pooling, cumulative sums, and the gradient of max-pooling.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

absl::StatusOr<ShardingRule> ReduceWindow(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const size_t inputs = instruction.operands().size() / 2;
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(instruction);
  const std::vector<int64_t>& from = instruction.operand(0)->shape().dims;
  const std::vector<int64_t>& to = hlo::Leaves(instruction.shape())[0]->dims;
  for (size_t d = 0; d < from.size(); ++d) {
    const auto put = [&](int32_t factor, bool in, bool out) {
      for (size_t i = 0; i < inputs && in; ++i) rule.operands[i][d] = {factor};
      for (size_t i = 0; i < inputs && out; ++i) rule.results[i][d] = {factor};
    };
    if (window[d] == hlo::WindowDim{}) {
      if (from[d] != 1) put(rule.AddFactor(from[d]), true, true);
    } else if (from[d] != 1 && to[d] != 1) {
      put(rule.AddFactor(from[d], FactorKind::kPermutation), true, true);
    } else {
      if (from[d] != 1) put(rule.AddFactor(from[d], FactorKind::kNeedReplication), true, false);
      if (to[d] != 1) put(rule.AddFactor(to[d], FactorKind::kNeedReplication), false, true);
    }
  }
  return rule;
}

// (operand, source, init) -> an array like the operand; a source element per window.
absl::StatusOr<ShardingRule> SelectAndScatter(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(instruction);
  const std::vector<int64_t>& dims = instruction.shape().dims;
  const std::vector<int64_t>& source = instruction.operand(1)->shape().dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    std::vector<int32_t>* operand = &rule.operands[0][d];
    if (window[d] == hlo::WindowDim{}) {
      Tie(rule, dims[d], FactorKind::kPassThrough,
          {operand, &rule.operands[1][d], &rule.results[0][d]});
    } else if (dims[d] != 1 && source[d] != 1) {
      Tie(rule, dims[d], FactorKind::kPermutation,
          {operand, &rule.operands[1][d], &rule.results[0][d]});
    } else {
      Tie(rule, dims[d], FactorKind::kNeedReplication, {operand, &rule.results[0][d]});
      Tie(rule, source[d], FactorKind::kNeedReplication, {&rule.operands[1][d]});
    }
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
