// Reductions over windows: pooling, cumulative sums, and the gradient of max-pooling.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

namespace {

using Tensors = std::initializer_list<std::span<TensorFactors>>;

// Dimension `d` of what a window goes over, `from` elements, and of its positions, `to`.
void TieWindow(ShardingRule& rule, const hlo::WindowDim& window, size_t d, int64_t from, int64_t to,
               Tensors elements, Tensors positions) {
  Dims over = At(d, elements), places = At(d, positions);
  const bool pointwise = window == hlo::WindowDim{};
  if (!pointwise && (from == 1 || to == 1)) {
    Tie(rule, from, FactorKind::kNeedReplication, over);
    Tie(rule, to, FactorKind::kNeedReplication, places);
    return;
  }
  over.insert(over.end(), places.begin(), places.end());
  Tie(rule, from, pointwise ? FactorKind::kPassThrough : FactorKind::kPermutation, over);
}

}  // namespace

absl::StatusOr<ShardingRule> ReduceWindow(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(instruction);
  const std::vector<int64_t>& from = instruction.operand(0)->shape().dims;
  const std::vector<int64_t>& to = hlo::Leaves(instruction.shape())[0]->dims;
  for (size_t d = 0; d < from.size(); ++d) {
    TieWindow(rule, window[d], d, from[d], to[d], {rule.operands}, {rule.results});
  }
  return rule;
}

// (operand, source, init) -> an array like the operand; a source element per window.
absl::StatusOr<ShardingRule> SelectAndScatter(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(instruction);
  const std::vector<int64_t>& dims = instruction.shape().dims;
  const std::vector<int64_t>& source = instruction.operand(1)->shape().dims;
  const std::span<TensorFactors> operands = rule.operands;
  for (size_t d = 0; d < dims.size(); ++d) {
    TieWindow(rule, window[d], d, dims[d], source[d], {operands.first(1), rule.results},
              {operands.subspan(1, 1)});
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
