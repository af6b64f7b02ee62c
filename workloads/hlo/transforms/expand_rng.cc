#include "workloads/hlo/transforms/expand_rng.h"

#include <numbers>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/plain_operations.h"

namespace tpusim::hlo {
namespace {

// A float of 32 bits: sign and exponent of 1.0, and its mantissa.
constexpr int64_t kMantissaBits = 23;
constexpr double kOneAsBits = 0x3f800000;

using Dims = std::vector<int64_t>;

// A state of a device's generator: no two in a module are alike, as none are on a device.
Instruction* State(Computation& computation, const Shape& shape) {
  Dims elements(static_cast<size_t>(shape.ElementCount()), 0);
  const int64_t number = computation.parent()->next_id();
  if (!elements.empty()) elements[0] = number;
  return AddLiteral(&computation, MakeIntVectorLiteral(shape.element_type, elements));
}

// u32 bits of the device's generator.
Instruction* RandomBits(Instruction& rng) {
  Computation& computation = *rng.parent();
  const Shape state_shape = MakeShape(PrimitiveType::kU64, {2});
  Instruction* state = State(computation, state_shape);
  const Shape bits_shape = MakeShape(PrimitiveType::kU32, rng.shape().dims);
  Instruction* generated =
      computation.Add(Opcode::kRngBitGenerator, MakeTupleShape({state_shape, bits_shape}), {state},
                      "", &rng);
  generated->mutable_attrs().set_rng_algorithm(pb::RNG_PHILOX);
  Instruction* bits =
      computation.Add(Opcode::kGetTupleElement, bits_shape, {generated}, "", &rng);
  bits->mutable_attrs().set_tuple_index(1);
  return bits;
}

// f32 in [0, 1): a mantissa of random bits below 2, less 1.
Instruction* UnitInterval(Instruction& rng, PlainOperations& operations) {
  const Dims& dims = rng.shape().dims;
  const auto fill = [&](double value) { return operations.Fill(PrimitiveType::kU32, dims, value); };
  Instruction* mantissa = operations.Apply(Opcode::kShiftRightLogical,
                                           {RandomBits(rng), fill(32 - kMantissaBits)});
  Instruction* bits = operations.Apply(Opcode::kOr, {mantissa, fill(kOneAsBits)});
  return operations.Apply(
      Opcode::kSubtract,
      {operations.Convert(Opcode::kBitcastConvert, bits, PrimitiveType::kF32),
       operations.Fill(PrimitiveType::kF32, dims, 1)});
}

// A scalar parameter of the distribution at every element, as f32 or as the type of the result.
Instruction* Parameter(const Instruction& rng, PlainOperations& operations, int64_t number,
                       PrimitiveType type) {
  Instruction* value = operations.Convert(Opcode::kConvert, rng.operand(number), type);
  return operations.Broadcast(value, rng.shape().dims, {});
}

void ExpandUniform(Instruction& rng) {
  PlainOperations operations(rng);
  const PrimitiveType type = rng.shape().element_type;
  // Integers in 32 bits of their own sign, in which a range may wrap around.
  const PrimitiveType computed = IsFloating(type)         ? PrimitiveType::kF32
                                 : IsSignedIntegral(type) ? PrimitiveType::kS32
                                                          : PrimitiveType::kU32;
  Instruction* low = Parameter(rng, operations, 0, computed);
  Instruction* range =
      operations.Apply(Opcode::kSubtract, {Parameter(rng, operations, 1, computed), low});
  Instruction* offset = nullptr;
  if (IsFloating(type)) {
    offset = operations.Apply(Opcode::kMultiply, {UnitInterval(rng, operations), range});
  } else {
    Instruction* positive =
        operations.Convert(Opcode::kBitcastConvert, range, PrimitiveType::kU32);
    offset = operations.Convert(
        Opcode::kBitcastConvert,
        operations.Apply(Opcode::kRemainder, {RandomBits(rng), positive}), computed);
  }
  Instruction* value = operations.Apply(Opcode::kAdd, {offset, low});
  operations.Replace(operations.Convert(Opcode::kConvert, value, type));
}

// mean + deviation * sqrt(-2 ln(1 - u)) cos(2 pi v), with u and v in [0, 1).
void ExpandNormal(Instruction& rng) {
  PlainOperations operations(rng);
  const PrimitiveType computed = PrimitiveType::kF32;
  const auto fill = [&](double value) {
    return operations.Fill(computed, rng.shape().dims, value);
  };
  Instruction* u = UnitInterval(rng, operations);
  Instruction* v = UnitInterval(rng, operations);
  Instruction* log = operations.Apply(
      Opcode::kLog, {operations.Apply(Opcode::kSubtract, {fill(1), u})});
  Instruction* radius = operations.Apply(
      Opcode::kSqrt, {operations.Apply(Opcode::kMultiply, {fill(-2), log})});
  Instruction* angle = operations.Apply(
      Opcode::kCosine, {operations.Apply(Opcode::kMultiply, {fill(2 * std::numbers::pi), v})});
  Instruction* standard = operations.Apply(Opcode::kMultiply, {radius, angle});
  Instruction* scaled = operations.Apply(
      Opcode::kMultiply, {standard, Parameter(rng, operations, 1, computed)});
  Instruction* value =
      operations.Apply(Opcode::kAdd, {scaled, Parameter(rng, operations, 0, computed)});
  operations.Replace(operations.Convert(Opcode::kConvert, value, rng.shape().element_type));
}

}  // namespace

void ExpandRng(Module& module) {
  for (Computation* computation : module.computations()) {
    for (Instruction* i : Walk(computation->instructions())) {
      if (i->opcode() == Opcode::kRngGetAndUpdateState && i->shape().rank() == 1) {
        PlainOperations(*i).Replace(State(*computation, i->shape()));
        continue;
      }
      if (i->opcode() != Opcode::kRng || i->operands().size() != 2) continue;
      const PrimitiveType type = i->shape().element_type;
      if (BitWidth(type) > 32 || type == PrimitiveType::kPred) continue;
      if (i->attrs().distribution() == pb::RNG_UNIFORM) {
        ExpandUniform(*i);
      } else if (i->attrs().distribution() == pb::RNG_NORMAL && IsFloating(type)) {
        ExpandNormal(*i);
      }
    }
  }
}

}  // namespace tpusim::hlo
