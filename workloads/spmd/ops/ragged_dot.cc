// Products of groups of rows: what the group sizes mean for a device's rows and groups.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using sharding::Axes;

// Rows and groups are found by their numbers; nothing else is needed.
std::optional<Bytes> RaggedDotOwn(const Instruction&, const sharding::ShardingRule&,
                                  const std::vector<Axes>&) {
  return Bytes(0);
}

absl::StatusOr<Instruction*> RaggedDot(const LocalOp& op) {
  Builder& builder = op.builder;
  const auto& ragged = op.global.attrs().ragged_dot_dimension_numbers();
  const int64_t row_dim = ragged.lhs_ragged_dimensions(0);
  const Axes& rows = OperandAxes(op, 0, row_dim);
  const int64_t group_dim =
      ragged.rhs_group_dimensions_size() == 1 ? ragged.rhs_group_dimensions(0) : -1;
  const Axes groups = group_dim < 0 ? Axes{} : OperandAxes(op, 1, group_dim);
  std::vector<Instruction*> operands = op.operands;
  for (size_t i = 0; i < 2; ++i) {
    operands[i] = MaskOperand(op, i, builder.Zero(operands[i]->shape().element_type));
  }
  if (rows.empty() && groups.empty()) return SameOpOn(op, std::move(operands));

  Instruction* sizes = Convert(builder, op.operands[2], PrimitiveType::kS32);
  const int64_t count = sizes->shape().dims[0], block = operands[0]->shape().dims[row_dim];
  Instruction* ends = RunningSum(builder, sizes);
  Instruction* begins = Binary(builder, Opcode::kSubtract, ends, sizes);
  if (!rows.empty()) {
    // Counted from the device's first row, and only as far as it has rows.
    Instruction* offset = Spread(builder, builder.Offset(rows, block), {count});
    const auto own = [&](Instruction* at) {
      Instruction* moved = Binary(builder, Opcode::kSubtract, at, offset);
      return builder.Add(Opcode::kClamp, moved->shape(),
                         {builder.Constant(PrimitiveType::kS32, 0), moved,
                          builder.Constant(PrimitiveType::kS32, block)});
    };
    ends = own(ends);
    begins = own(begins);
    sizes = Binary(builder, Opcode::kSubtract, ends, begins);
  }
  if (groups.empty()) {
    operands[2] = Convert(builder, sizes, op.operands[2]->shape().element_type);
    return SameOpOn(op, std::move(operands));
  }
  // The rows before the device's first group count as that group's, and those
  // and the ones behind its last group are cleared afterwards.
  const int64_t held = operands[1]->shape().dims[group_dim];
  Instruction* first = builder.Offset(groups, held);
  const auto of_held = [&](Instruction* values) {
    return DynamicSliceDim(builder, builder.Resize(values, 0, held * Product(groups)), 0, first,
                           held);
  };
  sizes = of_held(sizes);
  Instruction* begin = builder.Reshape(DynamicSliceDim(builder, begins, 0, first, 1), {});
  Instruction* is_first =
      Compare(builder, "EQ", IotaAlong(builder, {held}, 0),
              Spread(builder, builder.Constant(PrimitiveType::kS32, 0), {held}));
  Instruction* before = Select(builder, is_first, Spread(builder, begin, {held}),
                               builder.Constant(PrimitiveType::kS32, 0));
  sizes = Binary(builder, Opcode::kAdd, sizes, before);
  operands[2] = Convert(builder, sizes, op.operands[2]->shape().element_type);
  Instruction* dot = SameOpOn(op, operands);

  Instruction* end = builder.Add(Opcode::kReduce, hlo::MakeShape(PrimitiveType::kS32, {}),
                                 {sizes, builder.Constant(PrimitiveType::kS32, 0)});
  hlo::SetDimensions(end, {0});
  end->set_called({builder.BinaryRegion(Opcode::kAdd, PrimitiveType::kS32)});
  // The result's dimension of the rows: batch, then the free ones of the left.
  const hlo::DotDims dims = hlo::GetDotDims(op.global);
  int64_t result_dim = static_cast<int64_t>(dims.lhs_batch.size());
  for (int64_t d :
       hlo::FreeDims(op.operands[0]->shape().rank(), dims.lhs_contracting, dims.lhs_batch)) {
    if (d == row_dim) break;
    ++result_dim;
  }
  Instruction* row = IotaAlong(builder, op.shape.dims, result_dim);
  Instruction* mine = Binary(builder, Opcode::kAnd,
                             Compare(builder, "GE", row, Spread(builder, begin, op.shape.dims)),
                             Compare(builder, "LT", row, Spread(builder, end, op.shape.dims)));
  return Select(builder, mine, dot, builder.Zero(op.shape.element_type));
}

}  // namespace tpusim::spmd::ops
