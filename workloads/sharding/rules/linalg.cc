// Transforms and factorisations of the last dimensions: a batch of independent
// problems, each of which one device must see whole.
#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {
namespace {

// Leading dimensions that every operand and result shares are a batch, as many
// as leave `core` dimensions; the rest must be whole.
ShardingRule Batched(const hlo::Instruction& instruction, int64_t core) {
  ShardingRule rule = EmptyRule(instruction);
  std::vector<std::pair<const hlo::Shape*, TensorFactors*>> tensors;
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    tensors.emplace_back(&instruction.operand(i)->shape(), &rule.operands[i]);
  }
  const std::vector<const hlo::Shape*> leaves = hlo::Leaves(instruction.shape());
  for (size_t i = 0; i < leaves.size(); ++i) tensors.emplace_back(leaves[i], &rule.results[i]);
  const std::vector<int64_t>& first = tensors[0].first->dims;
  const int64_t batch = std::max<int64_t>(0, tensors[0].first->rank() - core);
  for (int64_t d = 0; d < batch; ++d) {
    Dims tied;
    for (auto& [shape, tensor] : tensors) {
      if (d < shape->rank() && shape->dims[d] == first[d]) tied.push_back(&(*tensor)[d]);
    }
    Tie(rule, first[d], FactorKind::kPassThrough, tied);
  }
  TieRest(rule, instruction);
  return rule;
}

}  // namespace

absl::StatusOr<ShardingRule> Fft(const hlo::Instruction& instruction) {
  return Batched(instruction, instruction.attrs().fft_length_size());
}

absl::StatusOr<ShardingRule> MatrixBatch(const hlo::Instruction& instruction) {
  return Batched(instruction, 2);
}

// a x = b: the right sides are independent of each other. (x a = b: the rows.)
absl::StatusOr<ShardingRule> TriangularSolve(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<int64_t>& dims = instruction.shape().dims;
  const size_t rank = dims.size();
  const bool left = instruction.attrs().triangular_solve_options().left_side();
  for (size_t d = 0; d + 2 < rank; ++d) {
    Tie(rule, dims[d], FactorKind::kPassThrough,
        {&rule.operands[0][d], &rule.operands[1][d], &rule.results[0][d]});
  }
  const size_t solved = left ? rank - 2 : rank - 1, free = left ? rank - 1 : rank - 2;
  Tie(rule, dims[free], FactorKind::kPassThrough,
      {&rule.operands[1][free], &rule.results[0][free]});
  Tie(rule, dims[solved], FactorKind::kNeedReplication,
      {&rule.operands[1][solved], &rule.results[0][solved]});
  TieRest(rule, instruction);
  return rule;
}

}  // namespace tpusim::sharding::rules
