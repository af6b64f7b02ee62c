// Slices, pads, reversals and concatenations. Where a split dimension is cut,
// moved or joined, a device fetches what its part of the result consists of.
#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rolls.h"
#include "workloads/spmd/emit/window.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using sharding::Axes;

Window SliceWindow(const Instruction& global, int64_t d, const Axes& axes) {
  const hlo::SliceDim slice = hlo::GetSlice(global)[d];
  return WindowOfParts(d, axes, global.operand(0)->shape().dims[d], global.shape().dims[d],
                       slice.start, slice.stride);
}

// Positions of one element among holes. nullopt if the shards of the result do not all begin
// alike.
std::optional<SpatialWindow> PadWindow(const Instruction& global, int64_t d, const Axes& axes) {
  const hlo::PaddingDim padding = hlo::GetPadding(global)[d];
  return SpatialWindowOf({.padding_low = padding.low, .base_dilation = padding.interior + 1}, d,
                         global.operand(0)->shape().dims[d], global.shape().dims[d], axes);
}

// Elements that a device's part of the result takes from one operand of a
// concatenation, which begins at `start` of the result.
Window ConcatenateWindow(const Instruction& global, size_t i, int64_t start, const Axes& axes) {
  const int64_t d = hlo::OnlyDimension(global);
  return WindowOfParts(d, axes, global.operand(i)->shape().dims[d], global.shape().dims[d], -start);
}

// Blocks of the result begin where those of the operand do, `first` elements on.
Window RollWindow(const Instruction& global, const Axes& axes) {
  const sharding::Roll roll = sharding::GetRoll(global);
  Window window = WindowOfParts(roll.dim, axes, global.operand(0)->shape().dims[roll.dim],
                                global.shape().dims[roll.dim], roll.first);
  window.cyclic = true;
  return window;
}

}  // namespace

std::optional<Bytes> SliceOwn(const Instruction& global, const sharding::ShardingRule& rule,
                              const std::vector<Axes>& axes) {
  Bytes bytes(0);
  const Shape local = LocalOperandShape(global, rule, axes, 0);
  for (int64_t d = 0; d < local.rank(); ++d) {
    const Axes* split = MovedAxes(rule, axes, rule.operands[0][d]);
    if (split == nullptr || global.shape().dims[d] == 1) continue;
    bytes += LineBytes(local, d) * ReceivedElements(SliceWindow(global, d, *split));
  }
  return bytes;
}

absl::StatusOr<Instruction*> Slice(const LocalOp& op) {
  Instruction* value = op.operands[0];
  Builder& builder = op.builder;
  const std::vector<hlo::SliceDim> global = hlo::GetSlice(op.global);
  std::vector<hlo::SliceDim> dims = global;
  Instruction* mine = nullptr;  // of several devices one has the element
  for (size_t d = 0; d < dims.size(); ++d) {
    if (op.global.shape().dims[d] == op.global.operand(0)->shape().dims[d]) {
      dims[d] = {0, op.shape.dims[d], 1};
      continue;
    }
    const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.operands[0][d]);
    if (split == nullptr) continue;
    if (op.global.shape().dims[d] == 1) {
      const int64_t block = value->shape().dims[d], at = global[d].start % block;
      dims[d] = {at, at + 1, 1};
      mine = And(builder, mine, HasShard(builder, *split, global[d].start / block));
      continue;
    }
    const Window window = SliceWindow(op.global, d, *split);
    value = Fetch(builder, value, window, nullptr);
    dims[d] = {0, window.width, global[d].stride};
  }
  Instruction* slice = SameOpOn(op, {value});
  hlo::SetSlice(slice, dims);
  if (mine == nullptr) return slice;
  return Select(builder, mine, slice, builder.Zero(op.shape.element_type));
}

std::optional<Bytes> PadOwn(const Instruction& global, const sharding::ShardingRule& rule,
                            const std::vector<Axes>& axes) {
  Bytes bytes(0);
  const Shape local = LocalOperandShape(global, rule, axes, 0);
  for (int64_t d = 0; d < local.rank(); ++d) {
    const Axes* split = MovedAxes(rule, axes, rule.results[0][d]);
    if (split == nullptr || local.dims[d] == 0) continue;
    if (global.operand(0)->shape().dims[d] == 1) continue;
    const std::optional<SpatialWindow> window = PadWindow(global, d, *split);
    if (!window) return std::nullopt;
    bytes += LineBytes(local, d) * ReceivedElements(window->fetched);
  }
  return bytes;
}

absl::StatusOr<Instruction*> Pad(const LocalOp& op) {
  Instruction* value = op.operands[0];
  Instruction* fill = op.operands[1];
  Builder& builder = op.builder;
  std::vector<hlo::PaddingDim> padding = hlo::GetPadding(op.global);
  for (size_t d = 0; d < padding.size(); ++d) {
    const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.results[0][d]);
    if (split == nullptr) continue;
    const int64_t part = op.shape.dims[d], dim = static_cast<int64_t>(d);
    if (op.global.operand(0)->shape().dims[d] == 1) {
      value = Repeat(builder, value, dim, part);
      Instruction* here = builder.InRange(value->shape(), dim, builder.Offset(*split, part),
                                          padding[d].low, padding[d].low + 1);
      value = Select(builder, here, value, fill);
      padding[d] = {};
      continue;
    }
    const std::optional<SpatialWindow> window = PadWindow(op.global, dim, *split);
    value = Fetch(builder, value, window->fetched, fill);
    padding[d] = {window->local.padding_low, window->local.padding_high, padding[d].interior};
  }
  Instruction* pad = SameOpOn(op, {value, fill});
  hlo::SetPadding(pad, padding);
  return pad;
}

std::optional<Bytes> ReverseOwn(const Instruction& global, const sharding::ShardingRule& rule,
                                const std::vector<Axes>& axes) {
  Bytes bytes(0);
  const Shape local = LocalOperandShape(global, rule, axes, 0);
  for (int64_t d = 0; d < local.rank(); ++d) {
    const Axes* split = MovedAxes(rule, axes, rule.operands[0][d]);
    if (split == nullptr) continue;
    if (bytes == Bytes(0)) bytes += local.ByteSize();  // one permutation for all
    const int64_t padding = Product(*split) * local.dims[d] - global.shape().dims[d];
    bytes += LineBytes(local, d) * padding;
  }
  return bytes;
}

// The blocks change places, and each is reversed. Padding, which is then in
// front, goes to the end by a halo.
absl::StatusOr<Instruction*> Reverse(const LocalOp& op) {
  Builder& builder = op.builder;
  Instruction* value = SameOpOn(op, op.operands);
  Axes all;
  for (int64_t d = 0; d < op.shape.rank(); ++d) {
    const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.operands[0][d]);
    if (split != nullptr) all = sharding::Concat(all, *split);
  }
  if (all.empty()) return value;
  // Counting backwards along every axis is counting backwards along all.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const std::vector<int64_t>& group : sharding::ReplicaGroups(builder.mesh(), all)) {
    for (size_t i = 0; i < group.size(); ++i) {
      pairs.emplace_back(group[i], group[group.size() - 1 - i]);
    }
  }
  std::ranges::sort(pairs);
  value = builder.CollectivePermute(value, pairs, all);
  for (int64_t d = 0; d < op.shape.rank(); ++d) {
    const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.operands[0][d]);
    if (split == nullptr) continue;
    const int64_t block = op.shape.dims[d], shards = Product(*split);
    const int64_t padding = shards * block - op.global.shape().dims[d];
    if (padding == 0) continue;
    value =
        Fetch(builder, value, {d, *split, shards * block, block, block, padding, block}, nullptr);
  }
  return value;
}

std::optional<Bytes> RollOwn(const Instruction& global, const sharding::ShardingRule& rule,
                             const std::vector<Axes>& axes) {
  const sharding::Roll roll = sharding::GetRoll(global);
  const Axes* split = MovedAxes(rule, axes, rule.operands[0][roll.dim]);
  if (split == nullptr) return Bytes(0);
  if (global.operand(0)->shape().dims[roll.dim] % Product(*split) != 0) return std::nullopt;
  const Shape local = LocalOperandShape(global, rule, axes, 0);
  return LineBytes(local, roll.dim) * ReceivedElements(RollWindow(global, *split));
}

absl::StatusOr<Instruction*> Roll(const LocalOp& op) {
  Builder& builder = op.builder;
  const sharding::Roll roll = sharding::GetRoll(op.global);
  Instruction* value = op.operands[0];
  if (const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.operands[0][roll.dim])) {
    return Fetch(builder, value, RollWindow(op.global, *split), nullptr);
  }
  // Whole: as the program said it.
  const int64_t size = value->shape().dims[roll.dim];
  std::vector<Instruction*> parts;
  int64_t at = roll.first;
  for (int64_t left = op.shape.dims[roll.dim]; left > 0;) {
    const int64_t count = std::min(left, size - at);
    parts.push_back(SliceDim(builder, value, roll.dim, at, at + count));
    left -= count;
    at = 0;
  }
  Instruction* joined = builder.Add(Opcode::kConcatenate, op.shape, parts);
  hlo::SetDimensions(joined, {roll.dim});
  return joined;
}

std::optional<Bytes> ConcatenateOwn(const Instruction& global, const sharding::ShardingRule& rule,
                                    const std::vector<Axes>& axes) {
  Bytes bytes(0);
  const int64_t d = hlo::OnlyDimension(global);
  const Axes* split = MovedAxes(rule, axes, rule.results[0][d]);
  if (split == nullptr) return bytes;
  int64_t start = 0;
  for (size_t i = 0; i < global.operands().size(); ++i) {
    const int64_t size = global.operand(i)->shape().dims[d];
    if (size > 1) {
      const Shape local = LocalOperandShape(global, rule, axes, i);
      bytes += LineBytes(local, d) * ReceivedElements(ConcatenateWindow(global, i, start, *split));
    }
    start += size;
  }
  return bytes;
}

absl::StatusOr<Instruction*> Concatenate(const LocalOp& op) {
  const int64_t d = hlo::OnlyDimension(op.global);
  const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.results[0][d]);
  if (split == nullptr) return SameOp(op);
  Builder& builder = op.builder;
  const int64_t part = op.shape.dims[d];
  Instruction* offset = builder.Offset(*split, part);
  Instruction* result = nullptr;
  int64_t start = 0;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const int64_t size = op.global.operand(i)->shape().dims[d];
    if (size == 0) continue;
    Instruction* piece = size == 1 ? Repeat(builder, op.operands[i], d, part)
                                   : Fetch(builder, op.operands[i],
                                           ConcatenateWindow(op.global, i, start, *split), nullptr);
    // Later operands overwrite what earlier ones have no elements for.
    result = result == nullptr
                 ? piece
                 : Select(builder, builder.InRange(op.shape, d, offset, std::nullopt, start),
                          result, piece);
    start += size;
  }
  return result == nullptr ? SameOp(op) : result;
}

}  // namespace tpusim::spmd::ops
