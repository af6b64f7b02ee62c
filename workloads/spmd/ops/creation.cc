// Values out of nothing: each device makes its own part.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/ops/emit.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;

// From where this device's shard begins.
Instruction* IotaShard(Builder& builder, const Shape& shape, int64_t dim,
                       const sharding::Axes& axes) {
  Instruction* iota = builder.Add(Opcode::kIota, shape, {});
  hlo::SetDimensions(iota, {dim});
  if (axes.empty()) return iota;
  Instruction* offset = builder.Offset(axes, shape.dims[dim]);
  if (shape.element_type != PrimitiveType::kS32) {
    offset = builder.Add(Opcode::kConvert, hlo::MakeShape(shape.element_type, {}), {offset});
  }
  Instruction* start = builder.Add(Opcode::kBroadcast, shape, {offset});
  return builder.Add(Opcode::kAdd, shape, {iota, start});
}

absl::StatusOr<Instruction*> Iota(const LocalOp& op) {
  const int64_t dim = hlo::OnlyDimension(op.global);
  return IotaShard(op.builder, op.shape, dim, op.choice.results[0].dims[dim].axes);
}

}  // namespace tpusim::spmd::ops
