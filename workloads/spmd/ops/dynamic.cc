// Slices whose place is data.
#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using sharding::Axes;

// A window of `size` elements over a dimension split in blocks, and the part of
// it that can be in one block: `width` elements from `local` on, which are
// elements `shift`, shift + 1, ... of the window (negative: before it).
struct BlockPart {
  int64_t size = 0, width = 0;
  Instruction* local = nullptr;
  Instruction* shift = nullptr;
};

BlockPart PartOf(Builder& builder, Instruction* start, int64_t whole, int64_t block, int64_t size,
                 const Axes& axes) {
  BlockPart part{size, std::min(size, block), nullptr, nullptr};
  start = ClampIndex(builder, start, whole - size);  // as the op itself does
  Instruction* from_block = Binary(builder, Opcode::kSubtract, start, builder.Offset(axes, block));
  part.local = ClampIndex(builder, from_block, block - part.width);
  part.shift = Binary(builder, Opcode::kSubtract, part.local, from_block);
  return part;
}

}  // namespace

// A start index of a dimension that is taken whole is clamped to 0, globally as
// well as locally, so the indices stay. Of a split dimension a device takes what it
// has of the slice, and zero elsewhere.
absl::StatusOr<Instruction*> DynamicSlice(const LocalOp& op) {
  Builder& builder = op.builder;
  std::vector<Instruction*> operands = op.operands;
  Instruction* zero = nullptr;
  Instruction* mine = nullptr;
  std::vector<std::pair<int64_t, BlockPart>> parts;
  std::vector<int64_t> sizes = op.shape.dims;
  for (int64_t d = 0; d < op.shape.rank(); ++d) {
    const Axes& axes = OperandAxes(op, 0, d);
    const int64_t whole = op.global.operand(0)->shape().dims[d], size = op.global.shape().dims[d];
    if (axes.empty() || size == whole) continue;
    const BlockPart part =
        PartOf(builder, operands[d + 1], whole, operands[0]->shape().dims[d], size, axes);
    operands[d + 1] = part.local;
    sizes[d] = part.width;
    if (size == 1) {
      mine = And(builder, mine,
                 Compare(builder, "EQ", part.shift, builder.Constant(PrimitiveType::kS32, 0)));
    } else {
      parts.emplace_back(d, part);
    }
  }
  if (mine != nullptr || !parts.empty()) {
    // Other indices may have another type; all have one here.
    for (size_t i = 1; i < operands.size(); ++i) {
      operands[i] = Convert(builder, operands[i], PrimitiveType::kS32);
    }
  }
  Instruction* slice =
      SameOpOn(op, hlo::MakeShape(op.shape.element_type, sizes), std::move(operands));
  hlo::SetDynamicSliceSizes(slice, sizes);
  zero = mine == nullptr && parts.empty() ? nullptr : builder.Zero(op.shape.element_type);
  if (mine != nullptr) slice = Select(builder, mine, slice, zero);
  for (const auto& of_dimension : parts) {
    const int64_t d = of_dimension.first;
    const auto& part = of_dimension.second;
    // Into zeros, at its place; what is before or behind the slice falls into the
    // margins.
    slice = AmongZeros(builder, slice, d, part.size + 2 * part.width, zero,
                       [&] { return Plus(builder, part.shift, part.width); });
    slice = SliceDim(builder, slice, d, part.width, part.width + part.size);
  }
  return slice;
}

// A device writes the part of an update that falls into its block of a split dimension: it reads
// the window's part of the block, replaces what the update covers, and writes it back.
absl::StatusOr<Instruction*> DynamicUpdateSlice(const LocalOp& op) {
  Builder& builder = op.builder;
  std::vector<Instruction*> operands = op.operands;
  std::vector<std::pair<int64_t, BlockPart>> parts;
  for (int64_t d = 0; d < op.shape.rank(); ++d) {
    const Axes& axes = OperandAxes(op, 0, d);
    const int64_t whole = op.global.shape().dims[d], size = op.global.operand(1)->shape().dims[d];
    if (axes.empty() || size == whole) continue;
    parts.emplace_back(d, PartOf(builder, operands[d + 2], whole, op.shape.dims[d], size, axes));
    operands[d + 2] = parts.back().second.local;
  }
  if (parts.empty()) return SameOp(op);
  for (size_t i = 2; i < operands.size(); ++i) {
    operands[i] = Convert(builder, operands[i], PrimitiveType::kS32);
  }
  Instruction* update = operands[1];
  Instruction* zero = builder.Zero(op.shape.element_type);
  for (const auto& [d, part] : parts) {
    if (part.size == 1) continue;
    update = PadDim(builder, update, d, part.width, part.width, zero);
    update = DynamicSliceDim(builder, update, d, Plus(builder, part.shift, part.width), part.width);
  }
  Instruction* covered = nullptr;
  for (const auto& [d, part] : parts) {
    covered = And(builder, covered, builder.InRange(update->shape(), d, part.shift, 0, part.size));
  }
  std::vector<Instruction*> read = operands;
  read.erase(read.begin() + 1);
  Instruction* old = builder.Add(Opcode::kDynamicSlice, update->shape(), read);
  hlo::SetDynamicSliceSizes(old, update->shape().dims);
  operands[1] = Select(builder, covered, update, old);
  return SameOpOn(op, std::move(operands));
}

}  // namespace tpusim::spmd::ops
