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
std::optional<VectorWork> WordCost(const Instruction& i, bool integer) {
  switch (i.opcode()) {
    case Opcode::kAbs:
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kNegate:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
    case Opcode::kCompare:
    case Opcode::kSelect:
    case Opcode::kConvert:
    case Opcode::kBitcastConvert:
    case Opcode::kIsFinite:
    case Opcode::kComplex:
    case Opcode::kReal:
    case Opcode::kImag:
    case Opcode::kCopy:
    case Opcode::kPopcnt:
    case Opcode::kCountLeadingZeros:
      return Valu(1);
    case Opcode::kMultiply:
      // A 32-bit integer product is put together from 16-bit halves.
      return Valu(integer ? 4 : 1);
    case Opcode::kMulhi:
      return Valu(6);
    case Opcode::kClamp:
    case Opcode::kSign:
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
      return Valu(2);
    case Opcode::kReducePrecision:
    case Opcode::kStochasticConvert:
      return Valu(4);
    case Opcode::kExponential:
    case Opcode::kTanh:
    case Opcode::kLog:
    case Opcode::kLogistic:
      return Valu(2, 1);
    case Opcode::kExponentialMinusOne:
    case Opcode::kLogPlusOne:
    case Opcode::kRsqrt:
    case Opcode::kSqrt:
    case Opcode::kCbrt:
      return Valu(4, 1);
    case Opcode::kDivide:
    case Opcode::kRemainder:
      // Reciprocal, one Newton step, multiply; integers go through floats twice.
      return integer ? Valu(12, 2) : Valu(4, 1);
    case Opcode::kPower:
    case Opcode::kAtan2:
    case Opcode::kErf:
    case Opcode::kSinh:
    case Opcode::kCosh:
      return Valu(12, 2);
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kTan:
      return Valu(24);
    case Opcode::kAcos:
    case Opcode::kAcosh:
    case Opcode::kAsin:
    case Opcode::kAsinh:
    case Opcode::kAtanh:
      // A logarithm or an arc tangent, and a root.
      return Valu(16, 3);
    default:
      return std::nullopt;
  }
}

// Real operations per component of a complex operation: a product is four
// multiplications and two additions for two components, a quotient two products
// and a reciprocal; functions are two real ones and a product.
double ComplexFactor(Opcode op) {
  switch (op) {
    case Opcode::kMultiply:
      return 3;
    case Opcode::kDivide:
      return 3;
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kNegate:
    case Opcode::kComplex:
    case Opcode::kReal:
    case Opcode::kImag:
    case Opcode::kSelect:
    case Opcode::kCompare:
    case Opcode::kConvert:
    case Opcode::kCopy:
      return 1;
    default:
      return 4;
  }
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
  std::optional<VectorWork> cost = WordCost(i, hlo::IsIntegral(i.shape().element_type));
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
  VectorWork sum;
  for (const Instruction* i : computation.PostOrder()) {
    switch (i->opcode()) {
      case Opcode::kParameter:
      case Opcode::kConstant:
      case Opcode::kTuple:
      case Opcode::kGetTupleElement:
      case Opcode::kBroadcast:
      case Opcode::kReshape:
      case Opcode::kBitcast:
        continue;
      case Opcode::kCall:
      case Opcode::kFusion: {
        ASSIGN_OR_RETURN(const VectorWork inner, CallCost(*i->called()[0]));
        sum += inner;
        continue;
      }
      default:
        break;
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
