#include "workloads/spmd/emit/emit.h"

#include <limits>
#include <numeric>

#include "workloads/hlo/ir/attributes.h"

namespace tpusim::spmd {

using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;

Instruction* Binary(Builder& builder, Opcode opcode, Instruction* a, Instruction* b) {
  return builder.Add(opcode, a->shape(), {a, b});
}

Instruction* Compare(Builder& builder, std::string_view direction, Instruction* a, Instruction* b) {
  Instruction* compare =
      builder.Add(Opcode::kCompare, MakeShape(PrimitiveType::kPred, a->shape().dims), {a, b});
  compare->mutable_attrs().set_comparison_direction(std::string(direction));
  return compare;
}

Instruction* Spread(Builder& builder, Instruction* value, const std::vector<int64_t>& dims,
                    const std::vector<int64_t>& to) {
  if (dims == value->shape().dims) return value;
  Instruction* spread =
      builder.Add(Opcode::kBroadcast, MakeShape(value->shape().element_type, dims), {value});
  hlo::SetDimensions(spread, to);
  return spread;
}

Instruction* Select(Builder& builder, Instruction* pred, Instruction* value,
                    Instruction* otherwise) {
  const std::vector<int64_t>& dims = value->shape().dims;
  if (pred->shape().IsScalar()) pred = Spread(builder, pred, dims);
  if (otherwise->shape().IsScalar()) otherwise = Spread(builder, otherwise, dims);
  return builder.Add(Opcode::kSelect, value->shape(), {pred, value, otherwise});
}

Instruction* Convert(Builder& builder, Instruction* value, PrimitiveType type) {
  if (value->shape().element_type == type) return value;
  return builder.Add(Opcode::kConvert, MakeShape(type, value->shape().dims), {value});
}

Instruction* ClampIndex(Builder& builder, Instruction* index, int64_t high) {
  const PrimitiveType type = index->shape().element_type;
  Instruction* clamped =
      builder.Add(Opcode::kClamp, index->shape(),
                  {builder.Constant(type, 0), index, builder.Constant(type, high)});
  return Convert(builder, clamped, PrimitiveType::kS32);
}

Instruction* Plus(Builder& builder, Instruction* a, int64_t b) {
  if (b == 0) return a;
  Instruction* constant = builder.Constant(PrimitiveType::kS32, b);
  return Binary(builder, Opcode::kAdd, a, Spread(builder, constant, a->shape().dims));
}

Instruction* SliceDim(Builder& builder, Instruction* value, int64_t dim, int64_t start,
                      int64_t limit, int64_t stride) {
  Shape shape = value->shape();
  if (start == 0 && limit == shape.dims[dim] && stride == 1) return value;
  std::vector<hlo::SliceDim> dims;
  for (int64_t extent : shape.dims) dims.push_back({0, extent, 1});
  dims[dim] = {start, limit, stride};
  shape.dims[dim] = (limit - start + stride - 1) / stride;
  Instruction* slice = builder.Add(Opcode::kSlice, shape, {value});
  hlo::SetSlice(slice, dims);
  return slice;
}

Instruction* DynamicSliceDim(Builder& builder, Instruction* value, int64_t dim, Instruction* start,
                             int64_t size) {
  Shape shape = value->shape();
  shape.dims[dim] = size;
  std::vector<Instruction*> operands(shape.rank() + 1, builder.Constant(PrimitiveType::kS32, 0));
  operands[0] = value;
  operands[dim + 1] = start;
  Instruction* slice = builder.Add(Opcode::kDynamicSlice, shape, operands);
  hlo::SetDynamicSliceSizes(slice, shape.dims);
  return slice;
}

Instruction* PadDim(Builder& builder, Instruction* value, int64_t dim, int64_t low, int64_t high,
                    Instruction* fill) {
  if (low == 0 && high == 0) return value;
  Shape shape = value->shape();
  shape.dims[dim] += low + high;
  Instruction* pad = builder.Add(Opcode::kPad, shape, {value, fill});
  std::vector<hlo::PaddingDim> padding(shape.rank());
  padding[dim].low = low;
  padding[dim].high = high;
  hlo::SetPadding(pad, padding);
  return pad;
}

Instruction* Repeat(Builder& builder, Instruction* value, int64_t dim, int64_t size) {
  std::vector<int64_t> dims = value->shape().dims, without = dims, to(dims.size());
  without.erase(without.begin() + dim);
  std::iota(to.begin(), to.end(), 0);
  to.erase(to.begin() + dim);
  dims[dim] = size;
  return Spread(builder, builder.Reshape(value, without), dims, to);
}

Instruction* IotaAlong(Builder& builder, const std::vector<int64_t>& dims, int64_t dim) {
  Instruction* iota = builder.Add(Opcode::kIota, MakeShape(PrimitiveType::kS32, dims), {});
  hlo::SetDimensions(iota, {dim});
  return iota;
}

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

Instruction* Extreme(Builder& builder, PrimitiveType type, bool largest) {
  double value = std::numeric_limits<double>::infinity() * (largest ? 1 : -1);
  if (!hlo::IsFloating(type)) {
    const int64_t bits = hlo::BitWidth(type);
    if (type == PrimitiveType::kPred) return builder.Constant(type, largest);
    const bool is_signed = hlo::IsSignedIntegral(type);
    // 2^(bits-1) - 1 and -2^(bits-1), or 2^bits - 1 and 0, as bit patterns.
    const uint64_t top = uint64_t{1} << (bits - 1);
    const uint64_t most = is_signed ? top - 1 : top | (top - 1);
    const int64_t least = is_signed ? -static_cast<int64_t>(top - 1) - 1 : 0;
    return builder.Constant(type, largest ? static_cast<int64_t>(most) : least);
  }
  return builder.Constant(type, value);
}

Instruction* RunningSum(Builder& builder, Instruction* values) {
  const int64_t n = values->shape().dims[0];
  Instruction* sum = builder.Add(Opcode::kReduceWindow, values->shape(),
                                 {values, builder.Constant(PrimitiveType::kS32, 0)});
  hlo::WindowDim window;
  window.size = n;
  window.padding_low = n - 1;
  hlo::SetWindow(sum, {window});
  sum->set_called({builder.BinaryRegion(Opcode::kAdd, PrimitiveType::kS32)});
  return sum;
}

Instruction* EntryOfShard(Builder& builder, const sharding::Axes& axes,
                          const std::vector<int64_t>& table) {
  Instruction* all =
      hlo::AddLiteral(builder.computation(), hlo::MakeIntVectorLiteral(PrimitiveType::kS32, table));
  return builder.Reshape(DynamicSliceDim(builder, all, 0, builder.Coordinate(axes), 1), {});
}

Instruction* HasShard(Builder& builder, const sharding::Axes& axes, int64_t shard) {
  return Compare(builder, "EQ", builder.Coordinate(axes),
                 builder.Constant(PrimitiveType::kS32, shard));
}

Instruction* And(Builder& builder, Instruction* a, Instruction* b) {
  return a == nullptr ? b : Binary(builder, Opcode::kAnd, a, b);
}

Combiner SumOf(PrimitiveType type) {
  return {type == PrimitiveType::kPred ? Opcode::kOr : Opcode::kAdd, type};
}

}  // namespace tpusim::spmd
