// Values out of nothing: each device makes its own part.
#include "workloads/hlo/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

// 0, 1, 2, ... from where this device's shard begins.
absl::StatusOr<Instruction*> Iota(const LocalOp& op) {
  Instruction* iota = SameOpOn(op, op.operands);
  const int64_t dim = hlo::OnlyDimension(op.global);
  const sharding::Axes& axes = op.choice.results[0].dims[dim].axes;
  if (axes.empty()) return iota;
  Builder& builder = op.builder;
  Instruction* offset = builder.Offset(axes, op.shape.dims[dim]);
  const PrimitiveType type = op.shape.element_type;
  if (type != PrimitiveType::kS32) {
    offset = builder.Add(Opcode::kConvert, hlo::MakeShape(type, {}), {offset});
  }
  Instruction* start = builder.Add(Opcode::kBroadcast, op.shape, {offset});
  return builder.Add(Opcode::kAdd, op.shape, {iota, start});
}

}  // namespace tpusim::spmd::ops
