// Slices whose place is data.
#include <algorithm>

#include "configs/units.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using sharding::Axes;

}  // namespace

// A dimension of which a part is taken is whole on every device. The start index of one that is
// taken whole is clamped to 0, globally as well as locally, so the indices stay.
absl::StatusOr<Instruction*> DynamicSlice(const LocalOp& op) {
  Instruction* slice = SameOpOn(op, op.operands);
  hlo::SetDynamicSliceSizes(slice, op.shape.dims);
  return slice;
}

// An update falls into one shard of a dimension if it is one element wide, or if its place is known.
// XLA's partitioner gathers every other dimension of which a part is written.
std::optional<Bytes> DynamicUpdateSliceOwn(const Instruction& global,
                                           const sharding::ShardingRule& rule,
                                           const std::vector<Axes>& axes) {
  for (int64_t d = 0; d < global.shape().rank(); ++d) {
    const Axes* split = MovedAxes(rule, axes, rule.results[0][d]);
    if (split == nullptr) continue;
    const int64_t whole = global.shape().dims[d], size = global.operand(1)->shape().dims[d];
    const std::optional<int64_t> stated = hlo::ScalarIntConstant(*global.operand(d + 2));
    if (!stated) return std::nullopt;
    const int64_t start = std::clamp<int64_t>(*stated, 0, whole - size);
    const int64_t block = CeilDiv(whole, Product(*split));
    if (start / block != (start + size - 1) / block) return std::nullopt;
  }
  return Bytes(0);
}

// The device whose block of every split dimension holds the update writes it. The others read what
// is at the nearest place of their block and write it back.
absl::StatusOr<Instruction*> DynamicUpdateSlice(const LocalOp& op) {
  Builder& builder = op.builder;
  std::vector<Instruction*> operands = op.operands;
  Instruction* mine = nullptr;
  for (int64_t d = 0; d < op.shape.rank(); ++d) {
    const Axes& axes = OperandAxes(op, 0, d);
    const int64_t whole = op.global.shape().dims[d], size = op.global.operand(1)->shape().dims[d];
    if (axes.empty() || size == whole) continue;
    const int64_t block = op.shape.dims[d];
    Instruction* start = ClampIndex(builder, operands[d + 2], whole - size);  // as the op itself
    Instruction* place = Binary(builder, Opcode::kSubtract, start, builder.Offset(axes, block));
    operands[d + 2] = ClampIndex(builder, place, block - size);
    mine = And(builder, mine, Compare(builder, "EQ", operands[d + 2], place));
  }
  if (mine == nullptr) return SameOp(op);
  for (size_t i = 2; i < operands.size(); ++i) {
    operands[i] = Convert(builder, operands[i], hlo::PrimitiveType::kS32);
  }
  std::vector<Instruction*> read = operands;
  read.erase(read.begin() + 1);
  Instruction* old = builder.Add(Opcode::kDynamicSlice, operands[1]->shape(), read);
  hlo::SetDynamicSliceSizes(old, operands[1]->shape().dims);
  operands[1] = Select(builder, mine, operands[1], old);
  return SameOpOn(op, std::move(operands));
}

}  // namespace tpusim::spmd::ops
