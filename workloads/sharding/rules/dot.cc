// Matrix products with any batch and contracting dimensions.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

absl::StatusOr<ShardingRule> Dot(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const auto& dims = instruction.attrs().dot_dimension_numbers();
  const std::vector<int64_t>& lhs = instruction.operand(0)->shape().dims;
  const std::vector<int64_t>& rhs = instruction.operand(1)->shape().dims;
  // The result's dimensions: batch, then free of the left, then of the right.
  size_t result = 0;
  for (int i = 0; i < dims.lhs_batch_dimensions_size(); ++i, ++result) {
    const int64_t l = dims.lhs_batch_dimensions(i), r = dims.rhs_batch_dimensions(i);
    Tie(rule, lhs[l], FactorKind::kPassThrough,
        {&rule.operands[0][l], &rule.operands[1][r], &rule.results[0][result]});
  }
  for (int i = 0; i < dims.lhs_contracting_dimensions_size(); ++i) {
    const int64_t l = dims.lhs_contracting_dimensions(i), r = dims.rhs_contracting_dimensions(i);
    Tie(rule, lhs[l], FactorKind::kReduction, {&rule.operands[0][l], &rule.operands[1][r]});
  }
  const auto is_free = [](const auto& batch, const auto& contracting, int64_t d) {
    return std::find(batch.begin(), batch.end(), d) == batch.end() &&
           std::find(contracting.begin(), contracting.end(), d) == contracting.end();
  };
  for (size_t d = 0; d < lhs.size(); ++d) {
    if (!is_free(dims.lhs_batch_dimensions(), dims.lhs_contracting_dimensions(), d)) continue;
    Tie(rule, lhs[d], FactorKind::kPassThrough, {&rule.operands[0][d], &rule.results[0][result++]});
  }
  for (size_t d = 0; d < rhs.size(); ++d) {
    if (!is_free(dims.rhs_batch_dimensions(), dims.rhs_contracting_dimensions(), d)) continue;
    Tie(rule, rhs[d], FactorKind::kPassThrough, {&rule.operands[1][d], &rule.results[0][result++]});
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
