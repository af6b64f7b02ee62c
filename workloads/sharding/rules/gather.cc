// Gather and scatter: slices at places that an array of indices lists.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {
namespace {

template <typename List>
int Find(const List& list, int64_t value) {
  const auto it = std::find(list.begin(), list.end(), value);
  return it == list.end() ? -1 : static_cast<int>(it - list.begin());
}

// Dimensions of the indices other than that of the index vector, in order.
std::vector<int64_t> IndexBatchDims(const hlo::Shape& indices, int64_t index_vector_dim) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != index_vector_dim) dims.push_back(d);
  }
  return dims;
}

void TieIndexVector(ShardingRule& rule, const hlo::Shape& indices, int64_t index_vector_dim,
                    TensorFactors& tensor) {
  if (index_vector_dim >= indices.rank()) return;  // an index is a scalar
  Tie(rule, indices.dims[index_vector_dim], FactorKind::kNeedReplication,
      {&tensor[index_vector_dim]});
}

}  // namespace

// Dimensions of the operand that are taken one element at a time may be split:
// a device gives what it holds, zero elsewhere, and the sum is the result.
absl::StatusOr<ShardingRule> Gather(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const auto& dims = instruction.attrs().gather_dimension_numbers();
  const auto& sizes = instruction.attrs().gather_slice_sizes();
  const hlo::Shape& operand = instruction.operand(0)->shape();
  const hlo::Shape& indices = instruction.operand(1)->shape();
  TensorFactors& from = rule.operands[0];
  TensorFactors& index = rule.operands[1];
  TensorFactors& result = rule.results[0];

  const std::vector<int64_t> batch = IndexBatchDims(indices, dims.index_vector_dim());
  size_t next_batch = 0;
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    if (Find(dims.offset_dims(), d) >= 0) continue;
    const int64_t i = batch[next_batch++];
    std::vector<int32_t> unused;
    std::vector<int32_t>* operand_dim = &unused;
    if (const int at = Find(dims.start_indices_batching_dims(), i); at >= 0) {
      operand_dim = &from[dims.operand_batching_dims(at)];
    }
    Tie(rule, indices.dims[i], FactorKind::kPassThrough, {operand_dim, &index[i], &result[d]});
  }
  TieIndexVector(rule, indices, dims.index_vector_dim(), index);

  int offset = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (Find(dims.operand_batching_dims(), d) >= 0) continue;
    const bool collapsed = Find(dims.collapsed_slice_dims(), d) >= 0;
    std::vector<int32_t>* out = collapsed ? nullptr : &result[dims.offset_dims(offset++)];
    const int64_t size = sizes.Get(static_cast<int>(d));
    if (size == operand.dims[d]) {
      if (out != nullptr) Tie(rule, size, FactorKind::kPassThrough, {&from[d], out});
    } else if (size == 1) {
      Tie(rule, operand.dims[d], FactorKind::kReduction, {&from[d]});
    } else {
      Tie(rule, operand.dims[d], FactorKind::kNeedReplication, {&from[d]});
      if (out != nullptr) Tie(rule, size, FactorKind::kNeedReplication, {out});
    }
  }
  return rule;
}

// The operand may be split where updates are one element wide: a device writes the updates that
// fall into its shard. Split updates give partial results.
absl::StatusOr<ShardingRule> Scatter(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const auto& dims = instruction.attrs().scatter_dimension_numbers();
  const size_t inputs = instruction.operands().size() / 2;
  const hlo::Shape& operand = instruction.operand(0)->shape();
  const hlo::Shape& indices = instruction.operand(inputs)->shape();
  const hlo::Shape& update = instruction.operand(inputs + 1)->shape();
  TensorFactors& index = rule.operands[inputs];
  const auto put = [&](int32_t factor, int64_t operand_dim, int64_t update_dim) {
    for (size_t i = 0; i < inputs; ++i) {
      if (operand_dim >= 0) {
        rule.operands[i][operand_dim].push_back(factor);
        rule.results[i][operand_dim].push_back(factor);
      }
      if (update_dim >= 0) rule.operands[inputs + 1 + i][update_dim].push_back(factor);
    }
  };

  const std::vector<int64_t> batch = IndexBatchDims(indices, dims.index_vector_dim());
  size_t next_batch = 0;
  for (int64_t d = 0; d < update.rank(); ++d) {
    if (Find(dims.update_window_dims(), d) >= 0) continue;
    const int64_t i = batch[next_batch++];
    if (indices.dims[i] == 1) continue;
    const int at = Find(dims.scatter_indices_batching_dims(), i);
    const int32_t factor = rule.AddFactor(
        indices.dims[i], at >= 0 ? FactorKind::kPassThrough : FactorKind::kReduction);
    index[i].push_back(factor);
    put(factor, at >= 0 ? dims.input_batching_dims(at) : -1, d);
  }
  TieIndexVector(rule, indices, dims.index_vector_dim(), index);

  int window = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (Find(dims.input_batching_dims(), d) >= 0) continue;
    const bool inserted = Find(dims.inserted_window_dims(), d) >= 0;
    const int64_t update_dim = inserted ? -1 : dims.update_window_dims(window++);
    const int64_t size = inserted ? 1 : update.dims[update_dim];
    if (operand.dims[d] == 1) continue;
    if (size == operand.dims[d]) {
      put(rule.AddFactor(size), d, update_dim);
    } else if (size == 1) {
      put(rule.AddFactor(operand.dims[d]), d, -1);
    } else {
      put(rule.AddFactor(operand.dims[d], FactorKind::kNeedReplication), d, -1);
      put(rule.AddFactor(size, FactorKind::kNeedReplication), -1, update_dim);
    }
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
