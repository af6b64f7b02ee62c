// Shards whose sizes do not fit: padding and masks.
#include "configs/status_macros.h"
#include "configs/units.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/builder.h"

namespace tpusim::spmd {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;
using sharding::Axes;

Instruction* Builder::Zero(PrimitiveType type) {
  switch (type) {
    case PrimitiveType::kPred:
    case PrimitiveType::kS8:
    case PrimitiveType::kS16:
    case PrimitiveType::kS32:
    case PrimitiveType::kS64:
    case PrimitiveType::kU8:
    case PrimitiveType::kU16:
    case PrimitiveType::kU32:
    case PrimitiveType::kU64:
    case PrimitiveType::kF16:
    case PrimitiveType::kBf16:
    case PrimitiveType::kF32:
    case PrimitiveType::kF64:
      return Constant(type, 0);
    default:  // complex numbers and small formats, which have no literal of their own here
      return Add(Opcode::kConvert, hlo::MakeShape(type, {}), {Constant(PrimitiveType::kF32, 0)});
  }
}

Instruction* Builder::Resize(Instruction* value, int64_t dim, int64_t size) {
  const int64_t now = value->shape().dims[dim];
  if (now == size) return value;
  Shape shape = value->shape();
  shape.dims[dim] = size;
  if (size > now) {
    Instruction* padded = Add(Opcode::kPad, shape, {value, Zero(shape.element_type)});
    std::vector<hlo::PaddingDim> padding(shape.rank());
    padding[dim].high = size - now;
    hlo::SetPadding(padded, padding);
    return padded;
  }
  Instruction* cut = Add(Opcode::kSlice, shape, {value});
  std::vector<hlo::SliceDim> dims;
  for (int64_t extent : shape.dims) dims.push_back({0, extent, 1});
  hlo::SetSlice(cut, dims);
  return cut;
}

Instruction* Builder::InRange(const Shape& shape, int64_t dim, Instruction* offset,
                              std::optional<int64_t> first, std::optional<int64_t> limit) {
  TPUSIM_CHECK(first || limit, "a range without bounds");
  const Shape index_shape = hlo::MakeShape(PrimitiveType::kS32, shape.dims);
  const Shape pred_shape = hlo::MakeShape(PrimitiveType::kPred, shape.dims);
  Instruction* index = Add(Opcode::kIota, index_shape, {});
  hlo::SetDimensions(index, {dim});
  const auto spread = [&](Instruction* scalar) {
    return Add(Opcode::kBroadcast, index_shape, {scalar});
  };
  if (offset != nullptr) index = Add(Opcode::kAdd, index_shape, {index, spread(offset)});
  const auto compare = [&](const char* direction, int64_t bound) {
    Instruction* result =
        Add(Opcode::kCompare, pred_shape, {index, spread(Constant(PrimitiveType::kS32, bound))});
    result->mutable_attrs().set_comparison_direction(direction);
    return result;
  };
  if (!first) return compare("LT", *limit);
  Instruction* above = compare("GE", *first);
  if (!limit) return above;
  return Add(Opcode::kAnd, pred_shape, {above, compare("LT", *limit)});
}

Instruction* Builder::Mask(Instruction* value, int64_t dim, const Axes& axes, int64_t size,
                           Instruction* fill) {
  if (size % Product(axes) == 0) return value;
  const Shape& shape = value->shape();
  Instruction* offset = Offset(axes, shape.dims[dim]);
  Instruction* real = InRange(shape, dim, offset, std::nullopt, size);
  return Add(Opcode::kSelect, shape, {real, value, Add(Opcode::kBroadcast, shape, {fill})});
}

}  // namespace tpusim::spmd
