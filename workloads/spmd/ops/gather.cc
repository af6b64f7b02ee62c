// Gather and scatter with indices into a split operand.
#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using sharding::Axes;

template <typename List>
int Find(const List& list, int64_t value) {
  const auto it = std::find(list.begin(), list.end(), value);
  return it == list.end() ? -1 : static_cast<int>(it - list.begin());
}

// Component `c` of the index vectors, one element per vector.
Instruction* Component(Builder& builder, Instruction* indices, int64_t vector_dim, int64_t c) {
  if (vector_dim == indices->shape().rank()) return indices;
  std::vector<int64_t> dims = indices->shape().dims;
  dims.erase(dims.begin() + vector_dim);
  return builder.Reshape(SliceDim(builder, indices, vector_dim, c, c + 1), dims);
}

Instruction* WithComponent(Builder& builder, Instruction* indices, int64_t vector_dim, int64_t c,
                           Instruction* component) {
  const std::vector<int64_t>& dims = indices->shape().dims;
  if (vector_dim == indices->shape().rank()) return component;
  if (dims[vector_dim] == 1) return builder.Reshape(component, dims);
  std::vector<int64_t> to;
  for (int64_t d = 0; d < indices->shape().rank(); ++d) {
    if (d != vector_dim) to.push_back(d);
  }
  Instruction* here = Compare(builder, "EQ", IotaAlong(builder, dims, vector_dim),
                              Spread(builder, builder.Constant(PrimitiveType::kS32, c), dims));
  return Select(builder, here, Spread(builder, component, dims, to), indices);
}

bool TakesOne(const Instruction& gather, int64_t d) {
  return gather.attrs().gather_slice_sizes(static_cast<int>(d)) == 1 &&
         gather.operand(0)->shape().dims[d] != 1;
}

}  // namespace

// Indices are counted from the start of the device's block; what is not in it
// gives zero.
absl::StatusOr<Instruction*> Gather(const LocalOp& op) {
  Builder& builder = op.builder;
  const auto& dims = op.global.attrs().gather_dimension_numbers();
  const hlo::Shape& whole = op.global.operand(0)->shape();
  const hlo::Shape& local = op.operands[0]->shape();
  const int64_t vector_dim = dims.index_vector_dim();
  Instruction* indices = op.operands[1];
  Instruction* mine = nullptr;  // per index vector, or a scalar
  for (int64_t d = 0; d < whole.rank(); ++d) {
    const Axes& axes = OperandAxes(op, 0, d);
    if (axes.empty() || !TakesOne(op.global, d) || Find(dims.operand_batching_dims(), d) >= 0) {
      continue;
    }
    const int c = Find(dims.start_index_map(), d);
    Instruction* here = nullptr;
    if (c < 0) {  // no index: the first element
      here = HasShard(builder, axes, 0);
    } else {
      Instruction* index = Component(builder, indices, vector_dim, c);
      index = ClampIndex(builder, index, whole.dims[d] - 1);
      indices = Convert(builder, indices, PrimitiveType::kS32);
      const std::vector<int64_t>& batch = index->shape().dims;
      index = Binary(builder, Opcode::kSubtract, index,
                     Spread(builder, builder.Offset(axes, local.dims[d]), batch));
      const auto bound = [&](int64_t value) {
        return Spread(builder, builder.Constant(PrimitiveType::kS32, value), batch);
      };
      here = Binary(builder, Opcode::kAnd, Compare(builder, "GE", index, bound(0)),
                    Compare(builder, "LT", index, bound(local.dims[d])));
      indices = WithComponent(builder, indices, vector_dim, c, index);
    }
    if (mine == nullptr) {
      mine = here;
    } else {
      if (mine->shape().IsScalar()) mine = Spread(builder, mine, here->shape().dims);
      mine = Binary(builder, Opcode::kAnd, mine, Spread(builder, here, mine->shape().dims));
    }
  }
  Instruction* gather = SameOpOn(op, {op.operands[0], indices});
  auto* sizes = gather->mutable_attrs().mutable_gather_slice_sizes();
  for (int d = 0; d < sizes->size(); ++d) {
    if (sizes->Get(d) == whole.dims[d]) sizes->Set(d, local.dims[d]);
  }
  if (mine == nullptr) return gather;
  if (indices != op.operands[1]) gather->mutable_attrs().set_indices_are_sorted(false);
  std::vector<int64_t> to;
  for (int64_t d = 0; d < op.shape.rank(); ++d) {
    if (Find(dims.offset_dims(), d) < 0) to.push_back(d);
  }
  if (!mine->shape().IsScalar()) mine = Spread(builder, mine, op.shape.dims, to);
  return Select(builder, mine, gather, builder.Zero(op.shape.element_type));
}

std::optional<Combiner> ScatterCombiner(const Instruction& scatter) {
  if (scatter.operands().size() != 3) return std::nullopt;
  const std::optional<Opcode> opcode = hlo::ReducerOperation(*scatter.called()[0]);
  if (!opcode) return std::nullopt;
  switch (*opcode) {
    case Opcode::kAdd:
    case Opcode::kMultiply:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      return Combiner{*opcode, scatter.shape().element_type};
    default:
      return std::nullopt;
  }
}

// Indices outside of the operand are skipped by definition, so it is enough to
// count them from the start of the device's block. Split updates: one device
// begins with the operand, the others with the neutral element.
absl::StatusOr<Instruction*> Scatter(const LocalOp& op) {
  Builder& builder = op.builder;
  const auto& dims = op.global.attrs().scatter_dimension_numbers();
  const size_t inputs = op.operands.size() / 2;
  const hlo::Shape& whole = op.global.operand(0)->shape();
  const hlo::Shape& update = op.global.operand(inputs + 1)->shape();
  const int64_t vector_dim = dims.index_vector_dim();
  std::vector<Instruction*> operands = op.operands;
  Instruction*& indices = operands[inputs];
  const auto minus_one = [&] {
    return Spread(builder, builder.Constant(PrimitiveType::kS32, -1), indices->shape().dims);
  };

  int window = 0;
  for (int64_t d = 0; d < whole.rank(); ++d) {
    if (Find(dims.input_batching_dims(), d) >= 0) continue;
    const bool inserted = Find(dims.inserted_window_dims(), d) >= 0;
    const int64_t size = inserted ? 1 : update.dims[dims.update_window_dims(window++)];
    const Axes& axes = OperandAxes(op, 0, d);
    if (axes.empty() || size == whole.dims[d]) continue;
    indices = Convert(builder, indices, PrimitiveType::kS32);
    const int64_t block = operands[0]->shape().dims[d];
    if (const int c = Find(dims.scatter_dims_to_operand_dims(), d); c >= 0) {
      Instruction* index = Component(builder, indices, vector_dim, c);
      index = Binary(builder, Opcode::kSubtract, index,
                     Spread(builder, builder.Offset(axes, block), index->shape().dims));
      indices = WithComponent(builder, indices, vector_dim, c, index);
    } else {  // no index: the first element
      indices = Select(builder, HasShard(builder, axes, 0), indices, minus_one());
    }
  }

  Axes partial;
  for (int64_t d = 0; d < indices->shape().rank(); ++d) {
    const int32_t factor = FactorOf(op.rule.operands[inputs][d]);
    if (factor < 0 || op.rule.factors[factor].kind != sharding::FactorKind::kReduction) continue;
    const Axes& axes = OperandAxes(op, inputs, d);
    if (axes.empty()) continue;
    partial = sharding::Concat(partial, axes);
    const int64_t size = op.global.operand(inputs)->shape().dims[d];
    if (size % Product(axes) == 0) continue;
    // Updates that are padding go nowhere.
    indices = Convert(builder, indices, PrimitiveType::kS32);
    Instruction* real = builder.InRange(
        indices->shape(), d, builder.Offset(axes, indices->shape().dims[d]), std::nullopt, size);
    indices = Select(builder, real, indices, minus_one());
  }
  if (!partial.empty()) {
    const Opcode opcode = ScatterCombiner(op.global)->opcode;
    const bool sums = opcode == Opcode::kAdd, products = opcode == Opcode::kMultiply;
    const Instruction* from = op.global.operand(0);
    if (from->opcode() == Opcode::kBroadcast) from = from->operand(0);
    if ((sums || products) && hlo::ScalarConstant(*from) != (sums ? 0.0 : 1.0)) {
      const PrimitiveType type = operands[0]->shape().element_type;
      Instruction* first = HasShard(builder, partial, 0);
      operands[0] = Select(builder, first, operands[0],
                           sums ? builder.Zero(type) : builder.Constant(type, 1));
    }
  }
  Instruction* scatter = SameOpOn(op, operands);
  if (indices != op.operands[inputs]) {
    scatter->mutable_attrs().set_indices_are_sorted(false);
    // Several may be out of bounds alike.
    scatter->mutable_attrs().set_unique_indices(false);
  }
  return scatter;
}

}  // namespace tpusim::spmd::ops
