#include "workloads/hlo/transforms/expand_bitcast_converts.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/plain_operations.h"

namespace tpusim::hlo {
namespace {

PrimitiveType UnsignedOf(PrimitiveType type) {
  switch (BitWidth(type)) {
    case 2:
      return PrimitiveType::kU2;
    case 4:
      return PrimitiveType::kU4;
    case 8:
      return PrimitiveType::kU8;
    case 16:
      return PrimitiveType::kU16;
    case 32:
      return PrimitiveType::kU32;
    default:
      return PrimitiveType::kU64;
  }
}

// The first bit, within a wide element, of each narrow one along the last of `dims`.
Instruction* FirstBits(PlainOperations& operations, PrimitiveType wide,
                       const std::vector<int64_t>& dims, int64_t width) {
  Instruction* number = operations.Iota(wide, dims, std::ssize(dims) - 1);
  return operations.Apply(Opcode::kMultiply,
                          {number, operations.Fill(wide, dims, static_cast<double>(width))});
}

Instruction* Narrowed(PlainOperations& operations, Instruction* wide, const Shape& result) {
  const PrimitiveType type = wide->shape().element_type;
  const int64_t width = BitWidth(result.element_type);
  std::vector<int64_t> at(wide->shape().dims.size());
  std::iota(at.begin(), at.end(), 0);
  Instruction* shifted = operations.Apply(Opcode::kShiftRightLogical,
                                          {operations.Broadcast(wide, result.dims, at),
                                           FirstBits(operations, type, result.dims, width)});
  Instruction* mask =
      operations.Fill(type, result.dims, std::ldexp(1, static_cast<int>(width)) - 1);
  return operations.Convert(Opcode::kConvert, operations.Apply(Opcode::kAnd, {shifted, mask}),
                            UnsignedOf(result.element_type));
}

Instruction* Widened(PlainOperations& operations, Instruction* narrow, const Shape& result) {
  const PrimitiveType type = UnsignedOf(result.element_type);
  const std::vector<int64_t>& dims = narrow->shape().dims;
  Instruction* first =
      FirstBits(operations, type, dims, BitWidth(narrow->shape().element_type));
  Instruction* shifted = operations.Apply(
      Opcode::kShiftLeft, {operations.Convert(Opcode::kConvert, narrow, type), first});
  return operations.Reduce(Opcode::kOr, shifted, {std::ssize(dims) - 1});
}

}  // namespace

void ExpandBitcastConverts(Module& module) {
  for (Computation* computation : module.computations()) {
    for (Instruction* i : Walk(computation->instructions())) {
      if (i->opcode() != Opcode::kBitcastConvert) continue;
      const Shape& from = i->operand(0)->shape();
      const Shape to = i->shape();
      if (from.rank() == to.rank()) continue;
      PlainOperations operations(*i);
      Instruction* bits = operations.Convert(Opcode::kBitcastConvert, i->operand(0),
                                             UnsignedOf(from.element_type));
      bits = from.rank() < to.rank() ? Narrowed(operations, bits, to)
                                     : Widened(operations, bits, to);
      operations.Replace(operations.Convert(Opcode::kBitcastConvert, bits, to.element_type));
    }
  }
}

}  // namespace tpusim::hlo
