// Elementwise operations, and calls of scalar computations made of them.
//
// The classes are those of the Pallas TPU documentation: add, subtract, multiply,
// min/max, select, compare, shifts, bit operations and casts are one VALU
// operation; exp, tanh, log, reciprocal and roots go through the transcendental
// unit with a few VALU operations around it (range reduction, a Newton step, a
// blend); sine and cosine are polynomial sequences on the VALUs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

VectorWork Valu(double valu, double eup = 0) {
  VectorWork work;
  work.valu = valu;
  work.eup = eup;
  return work;
}

// Of 32-bit elements.
std::optional<VectorWork> WordCost(Opcode op, bool integer) {
  using enum Opcode;
  const auto is = [op](std::initializer_list<Opcode> any) {
    return std::ranges::find(any, op) != any.end();
  };
  if (is({kAbs,
          kAdd,
          kSubtract,
          kMaximum,
          kMinimum,
          kNegate,
          kAnd,
          kOr,
          kXor,
          kNot,
          kShiftLeft,
          kShiftRightArithmetic,
          kShiftRightLogical,
          kCompare,
          kSelect,
          kConvert,
          kBitcastConvert,
          kIsFinite,
          kComplex,
          kReal,
          kImag,
          kCopy,
          kPopcnt,
          kCountLeadingZeros})) {
    return Valu(1);
  }
  // A 32-bit integer product is put together from 16-bit halves.
  if (op == kMultiply) return Valu(integer ? 4 : 1);
  if (op == kMulhi) return Valu(6);
  if (is({kClamp, kSign, kFloor, kCeil, kRoundNearestAfz, kRoundNearestEven})) return Valu(2);
  if (is({kReducePrecision, kStochasticConvert})) return Valu(4);
  if (is({kExponential, kTanh, kLog, kLogistic})) return Valu(2, 1);
  if (is({kExponentialMinusOne, kLogPlusOne, kRsqrt, kSqrt, kCbrt})) return Valu(4, 1);
  // Reciprocal, one Newton step, multiply; integers go through floats twice.
  if (is({kDivide, kRemainder})) return integer ? Valu(12, 2) : Valu(4, 1);
  if (is({kPower, kAtan2, kErf, kSinh, kCosh})) return Valu(12, 2);
  if (is({kSine, kCosine, kTan})) return Valu(24);
  // A logarithm or an arc tangent, and a root.
  if (is({kAcos, kAcosh, kAsin, kAsinh, kAtanh})) return Valu(16, 3);
  return std::nullopt;
}

// Real operations per component of a complex operation: a product is four
// multiplications and two additions for two components, a quotient two products
// and a reciprocal; functions are two real ones and a product.
double ComplexFactor(Opcode op) {
  using enum Opcode;
  if (op == kMultiply || op == kDivide) return 3;
  constexpr Opcode kPerComponent[] = {kAdd,  kSubtract, kNegate,  kComplex, kReal,
                                      kImag, kSelect,   kCompare, kConvert, kCopy};
  return std::ranges::find(kPerComponent, op) != std::end(kPerComponent) ? 1 : 4;
}

// The type that is computed on.
PrimitiveType ComputedType(const Instruction& i) {
  const bool from_operand = i.opcode() == Opcode::kCompare || i.opcode() == Opcode::kConvert;
  return from_operand && !i.operands().empty() ? i.operand(0)->shape().element_type
                                               : i.shape().element_type;
}

}  // namespace

std::optional<VectorWork> ElementwiseCost(const Instruction& i) {
  const PrimitiveType type = ComputedType(i);
  std::optional<VectorWork> cost = WordCost(i.opcode(), hlo::IsIntegral(i.shape().element_type));
  if (!cost) return cost;
  if (hlo::IsComplex(type)) return *cost * ComplexFactor(i.opcode());
  if (hlo::BitWidth(type) == 64) {
    // Two words with a carry between them; doubles are pairs of floats, with the
    // error of every operation computed beside it.
    return *cost * (type == PrimitiveType::kF64 ? 10 : 3);
  }
  return cost;
}

// Nothing runs beside a chain of scalars: each of the operations that the same takes of
// a register waits for the one before.
isa::Block ScalarBlock(const Instruction& i, const target::Target& target) {
  const VectorWork work = ElementwiseCost(i).value_or(VectorWork{});
  const double operations = std::max(1.0, work.valu + work.eup);
  isa::Block block;
  block.scalar =
      Cycles(std::llround(operations) * static_cast<int64_t>(target.chip().vpu.latency_cycles));
  return block;
}

absl::StatusOr<VectorWork> CallCost(const hlo::Computation& computation) {
  using enum Opcode;
  constexpr Opcode kNothing[] = {kParameter, kConstant, kTuple,  kGetTupleElement,
                                 kBroadcast, kReshape,  kBitcast};
  VectorWork sum;
  for (const Instruction* i : computation.PostOrder()) {
    if (std::ranges::find(kNothing, i->opcode()) != std::end(kNothing)) continue;
    if (i->opcode() == kCall || i->opcode() == kFusion) {
      ASSIGN_OR_RETURN(const VectorWork inner, CallCost(*i->called()[0]));
      sum += inner;
      continue;
    }
    const auto cost = ElementwiseCost(*i);
    if (!cost) {
      return NoRule(fmt::format("no kernel for {}: op '{}' has no rule inside a reducer",
                                i->Describe(), hlo::OpcodeName(i->opcode())));
    }
    sum += *cost;
  }
  return sum;
}

}  // namespace tpusim::kernels
