// Matrix products of groups of rows, whose sizes are data.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

// Three forms, by what the ragged dimension m of the left side is:
//   free         (m k) (g k n) -> (m n)   every group of rows has a matrix of its own
//   contracting  (m k) (m n)   -> (g k n) the gradient of those matrices
//   batch        like a dot with a batch
// Rows may be split: a device knows from the sizes which of its rows are whose.
absl::StatusOr<ShardingRule> RaggedDot(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const hlo::DotDims dims = hlo::GetDotDims(instruction);
  const auto& ragged_dims = instruction.attrs().ragged_dot_dimension_numbers();
  const hlo::Shape& sizes = instruction.operand(2)->shape();
  if (ragged_dims.lhs_ragged_dimensions_size() != 1 || sizes.rank() != 1) {
    return NoRule(fmt::format(
        "ragged-dot with {} ragged dimensions and group sizes {} has no "
        "sharding rule: {}",
        ragged_dims.lhs_ragged_dimensions_size(), sizes.ToString(), instruction.Describe()));
  }
  const int64_t ragged = ragged_dims.lhs_ragged_dimensions(0);
  const hlo::Shape& lhs = instruction.operand(0)->shape();
  const hlo::Shape& rhs = instruction.operand(1)->shape();
  TensorFactors& result = rule.results[0];
  const auto contains = [](const auto& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  size_t next = 0;
  if (contains(dims.lhs_contracting, ragged)) {
    Tie(rule, instruction.shape().dims[0], FactorKind::kNeedReplication, {&result[next++]});
  }
  for (size_t i = 0; i < dims.lhs_batch.size(); ++i) {
    Tie(rule, lhs.dims[dims.lhs_batch[i]],
        dims.lhs_batch[i] == ragged ? FactorKind::kNeedReplication : FactorKind::kPassThrough,
        {&rule.operands[0][dims.lhs_batch[i]], &rule.operands[1][dims.rhs_batch[i]],
         &result[next++]});
  }
  for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    Tie(rule, lhs.dims[dims.lhs_contracting[i]], FactorKind::kReduction,
        {&rule.operands[0][dims.lhs_contracting[i]], &rule.operands[1][dims.rhs_contracting[i]]});
  }
  for (int64_t d : hlo::FreeDims(lhs.rank(), dims.lhs_contracting, dims.lhs_batch)) {
    Tie(rule, lhs.dims[d], d == ragged ? FactorKind::kPermutation : FactorKind::kPassThrough,
        {&rule.operands[0][d], &result[next++]});
  }
  for (int64_t d : hlo::FreeDims(rhs.rank(), dims.rhs_contracting, dims.rhs_batch)) {
    if (contains(ragged_dims.rhs_group_dimensions(), d)) {
      // Rows of groups that a device does not hold are zero in its partial result.
      Tie(rule, rhs.dims[d], FactorKind::kReduction, {&rule.operands[1][d]});
    } else {
      Tie(rule, rhs.dims[d], FactorKind::kPassThrough, {&rule.operands[1][d], &result[next++]});
    }
  }
  Tie(rule, sizes.dims[0], FactorKind::kNeedReplication, {&rule.operands[2][0]});
  return rule;
}

}  // namespace tpusim::sharding::rules
