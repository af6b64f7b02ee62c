// Matrix products with any batch and contracting dimensions, and of groups of rows, whose sizes are
// data.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {
namespace {

bool Has(const auto& list, int64_t d) { return std::ranges::find(list, d) != list.end(); }

// `ragged`: the dimension of the left side that the sizes of groups cut; -1: none.
ShardingRule ProductRule(const hlo::Instruction& instruction, int64_t ragged) {
  ShardingRule rule = EmptyRule(instruction);
  const hlo::DotDims dims = hlo::GetDotDims(instruction);
  const auto& groups = instruction.attrs().ragged_dot_dimension_numbers().rhs_group_dimensions();
  const std::vector<int64_t>& lhs = instruction.operand(0)->shape().dims;
  const std::vector<int64_t>& rhs = instruction.operand(1)->shape().dims;
  TensorFactors &left = rule.operands[0], &right = rule.operands[1], &result = rule.results[0];
  // The result's dimensions: groups of a contraction, batch, free of the left, then of the right.
  size_t next = 0;
  if (Has(dims.lhs_contracting, ragged)) {
    Tie(rule, instruction.shape().dims[0], FactorKind::kNeedReplication, {&result[next++]});
  }
  for (size_t i = 0; i < dims.lhs_batch.size(); ++i) {
    const int64_t l = dims.lhs_batch[i], r = dims.rhs_batch[i];
    Tie(rule, lhs[l], l == ragged ? FactorKind::kNeedReplication : FactorKind::kPassThrough,
        {&left[l], &right[r], &result[next++]});
  }
  for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    const int64_t l = dims.lhs_contracting[i], r = dims.rhs_contracting[i];
    Tie(rule, lhs[l], FactorKind::kReduction, {&left[l], &right[r]});
  }
  for (const int64_t d : hlo::FreeDims(std::ssize(lhs), dims.lhs_contracting, dims.lhs_batch)) {
    Tie(rule, lhs[d], d == ragged ? FactorKind::kPermutation : FactorKind::kPassThrough,
        {&left[d], &result[next++]});
  }
  for (const int64_t d : hlo::FreeDims(std::ssize(rhs), dims.rhs_contracting, dims.rhs_batch)) {
    if (Has(groups, d)) {
      // Rows of groups that a device does not hold are zero in its partial result.
      Tie(rule, rhs[d], FactorKind::kReduction, {&right[d]});
    } else {
      Tie(rule, rhs[d], FactorKind::kPassThrough, {&right[d], &result[next++]});
    }
  }
  return rule;
}

}  // namespace

absl::StatusOr<ShardingRule> Dot(const hlo::Instruction& instruction) {
  return ProductRule(instruction, -1);
}

// Three forms, by what the ragged dimension m of the left side is:
//   free         (m k) (g k n) -> (m n)   every group of rows has a matrix of its own
//   contracting  (m k) (m n)   -> (g k n) the gradient of those matrices
//   batch        like a dot with a batch
// Rows may be split: a device knows from the sizes which of its rows are whose.
absl::StatusOr<ShardingRule> RaggedDot(const hlo::Instruction& instruction) {
  const auto& ragged = instruction.attrs().ragged_dot_dimension_numbers().lhs_ragged_dimensions();
  const hlo::Shape& sizes = instruction.operand(2)->shape();
  if (ragged.size() != 1 || sizes.rank() != 1) {
    return NoRule(fmt::format(
        "ragged-dot with {} ragged dimensions and group sizes {} has no sharding rule: {}",
        ragged.size(), sizes.ToString(), instruction.Describe()));
  }
  ShardingRule rule = ProductRule(instruction, ragged[0]);
  Tie(rule, sizes.dims[0], FactorKind::kNeedReplication, {&rule.operands[2][0]});
  return rule;
}

}  // namespace tpusim::sharding::rules
