// Shards whose sizes do not fit: padding and masks.
#include "configs/status_macros.h"
#include "configs/units.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/emit.h"

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
  return size > now ? PadDim(*this, value, dim, 0, size - now, Zero(value->shape().element_type))
                    : SliceDim(*this, value, dim, 0, size);
}

Instruction* Builder::InRange(const Shape& shape, int64_t dim, Instruction* offset,
                              std::optional<int64_t> first, std::optional<int64_t> limit) {
  TPUSIM_CHECK(first || limit, "a range without bounds");
  Instruction* index = IotaAlong(*this, shape.dims, dim);
  if (offset != nullptr) {
    index = Binary(*this, Opcode::kAdd, index, Spread(*this, offset, shape.dims));
  }
  const auto compare = [&](const char* direction, int64_t bound) {
    return Compare(*this, direction, index,
                   Spread(*this, Constant(PrimitiveType::kS32, bound), shape.dims));
  };
  if (!first) return compare("LT", *limit);
  Instruction* above = compare("GE", *first);
  if (!limit) return above;
  return And(*this, above, compare("LT", *limit));
}

Instruction* Builder::Mask(Instruction* value, int64_t dim, const Axes& axes, int64_t size,
                           Instruction* fill) {
  if (size % Product(axes) == 0) return value;
  const Shape& shape = value->shape();
  Instruction* offset = Offset(axes, shape.dims[dim]);
  Instruction* real = InRange(shape, dim, offset, std::nullopt, size);
  return Select(*this, real, value, fill);
}

}  // namespace tpusim::spmd
