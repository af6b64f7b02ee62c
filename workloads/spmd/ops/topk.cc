// The largest k along a split dimension: each device's own k, then the best of these.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;
using sharding::Axes;

std::optional<Bytes> TopKOwn(const Instruction& global, const sharding::ShardingRule& rule,
                             const std::vector<Axes>& axes) {
  const int32_t factor = FactorOf(rule.operands[0].back());
  if (factor < 0 || axes[factor].empty()) return Bytes(0);
  const Shape local = LocalOperandShape(global, rule, axes, 0);
  const Shape& values = global.shape().tuple[0];
  const int64_t k = values.dims.back();
  if (k > local.dims.back()) return std::nullopt;
  Shape found = local;
  found.dims.back() = k;
  Shape places = found;
  places.element_type = global.shape().tuple[1].element_type;
  return (found.ByteSize() + places.ByteSize()) * (Product(axes[factor]) - 1);
}

// Candidates stay in the order of their shards, so that among equals the first one wins
// as in the whole array.
absl::StatusOr<Instruction*> TopK(const LocalOp& op) {
  const int64_t last = op.operands[0]->shape().rank() - 1;
  const Axes& axes = OperandAxes(op, 0, last);
  if (axes.empty()) return SameOp(op);
  Builder& builder = op.builder;
  const PrimitiveType type = op.operands[0]->shape().element_type;
  const bool largest = op.global.opcode() == Opcode::kCustomCall || op.global.attrs().largest();
  Instruction* value = op.operands[0];
  const int64_t block = value->shape().dims[last], size = op.global.operand(0)->shape().dims[last];
  if (size % Product(axes) != 0) {
    value = builder.Mask(value, last, axes, size, Extreme(builder, type, !largest));
  }
  Instruction* local = SameOpOn(op, {value});
  Instruction* values = builder.AllGather(builder.Element(local, 0), axes, last);
  Instruction* places = builder.Element(local, 1);
  Instruction* offset = Convert(builder, builder.Offset(axes, block), places->shape().element_type);
  places = Binary(builder, Opcode::kAdd, places, Spread(builder, offset, places->shape().dims));
  places = builder.AllGather(places, axes, last);
  Instruction* best = SameOpOn(op, {values});
  // Where the winners were: places[..., best[...]].
  Instruction* winners = builder.Element(best, 1);
  Instruction* picked = builder.Add(Opcode::kGather, winners->shape(), {places, winners});
  auto* dims = picked->mutable_attrs().mutable_gather_dimension_numbers();
  for (int64_t d = 0; d < last; ++d) {
    dims->add_operand_batching_dims(d);
    dims->add_start_indices_batching_dims(d);
  }
  dims->add_collapsed_slice_dims(last);
  dims->add_start_index_map(last);
  dims->set_index_vector_dim(last + 1);
  for (int64_t d = 0; d <= last; ++d) picked->mutable_attrs().add_gather_slice_sizes(1);
  return builder.Add(Opcode::kTuple, op.shape, {builder.Element(best, 0), picked});
}

}  // namespace tpusim::spmd::ops
