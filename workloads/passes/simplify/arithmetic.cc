// Neutral elements, repetitions, conversions.
#include <limits>
#include <string>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/simplify/simplify.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

bool IsWhole(PrimitiveType type) { return hlo::IsIntegral(type) || type == PrimitiveType::kPred; }

// Whether all bits of all elements are set.
bool IsAllOnes(const Instruction& i) {
  const PrimitiveType type = i.shape().element_type;
  if (type == PrimitiveType::kPred) return IsAll(i, 1);
  return hlo::IsSignedIntegral(type) && IsAll(i, -1);
}

// Whether all elements are the least value of the type or, with `least` unset, the greatest.
bool IsExtreme(const Instruction& i, bool least) {
  const PrimitiveType type = i.shape().element_type;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (hlo::IsFloating(type)) return IsAll(i, least ? -kInfinity : kInfinity);
  if (type == PrimitiveType::kPred) return IsAll(i, least ? 0 : 1);
  return least && hlo::IsIntegral(type) && !hlo::IsSignedIntegral(type) && IsAll(i, 0);
}

// Returns the other operand of a commutative operation if one is `neutral`; else null.
Instruction* OtherThan(const Instruction& i, double neutral) {
  if (IsAll(*i.operand(1), neutral)) return i.operand(0);
  if (IsAll(*i.operand(0), neutral)) return i.operand(1);
  return nullptr;
}

// ---- Conversions -----------------------------------------------------------

// Bits of the significand and of the exponent of a floating-point format; an integer has no
// exponent. All zero: the type is not known here.
struct Format {
  int significand = 0;
  int exponent = 0;
  bool negative = false;
};

Format FormatOf(PrimitiveType type) {
  switch (type) {
    case PrimitiveType::kPred:
      return {1, 0, false};
    case PrimitiveType::kF64:
      return {53, 11, true};  // number: mantissa and exponent of a format
    case PrimitiveType::kF32:
      return {24, 8, true};  // number: mantissa and exponent of a format
    case PrimitiveType::kBf16:
      return {8, 8, true};  // number: mantissa and exponent of a format
    case PrimitiveType::kF16:
      return {11, 5, true};  // number: mantissa and exponent of a format
    default:
      break;
  }
  const int bits = static_cast<int>(hlo::BitWidth(type));
  if (!hlo::IsIntegral(type)) return {};
  return hlo::IsSignedIntegral(type) ? Format{bits - 1, 0, true} : Format{bits, 0, false};
}

// Whether every value of `from` is a value of `to`.
bool Holds(PrimitiveType to, PrimitiveType from) {
  const Format a = FormatOf(from), b = FormatOf(to);
  if (a.significand == 0 || b.significand == 0 || (a.negative && !b.negative)) return false;
  if (a.exponent == 0 && b.exponent == 0) return b.significand >= a.significand;
  if (b.exponent == 0) return false;
  // The largest integer of `from` is below 2^significand, which must be in range.
  if (a.exponent == 0)
    return b.significand >= a.significand && (1 << (b.exponent - 1)) > a.significand;
  return b.significand >= a.significand && b.exponent >= a.exponent;
}

Instruction* OfConvert(Instruction* i) {
  Instruction* from = i->operand(0);
  if (i->shape().element_type == from->shape().element_type) return from;
  if (from->opcode() != Opcode::kConvert) return nullptr;
  Instruction* origin = from->operand(0);
  const PrimitiveType first = origin->shape().element_type;
  const PrimitiveType middle = from->shape().element_type;
  if (!Holds(middle, first)) return nullptr;
  // From a float to an integer and from a number to pred mean more than values.
  if (i->shape().element_type == PrimitiveType::kPred) return nullptr;
  if (i->shape().element_type == first) return origin;
  return i->parent()->Add(Opcode::kConvert, i->shape(), {origin}, "convert", i);
}

// ---- Selections ------------------------------------------------------------

Instruction* OfSelect(const Instruction& i) {
  if (i.operand(1) == i.operand(2)) return i.operand(1);
  const Instruction* constant = ConstantElement(*i.operand(0));
  if (constant != nullptr) {
    const auto pred = hlo::ScalarIntConstant(*constant);
    if (pred.has_value()) return i.operand(*pred != 0 ? 1 : 2);
  }
  const bool passes_on = i.shape().element_type == PrimitiveType::kPred &&
                         hlo::SameDims(i.operand(0)->shape(), i.shape()) &&
                         IsAll(*i.operand(1), 1) && IsAll(*i.operand(2), 0);
  return passes_on ? i.operand(0) : nullptr;
}

// p != false and p == true are p; x < x and the like of whole numbers are known (a NaN is not
// equal to itself).
Instruction* OfCompare(Instruction* i) {
  if (i->operand(0)->shape().element_type == PrimitiveType::kPred) {
    const std::string& direction = i->attrs().comparison_direction();
    if (direction == "NE" || direction == "EQ") {
      if (Instruction* other = OtherThan(*i, direction == "EQ" ? 1 : 0)) return other;
    }
  }
  if (i->operand(0) != i->operand(1) || !IsWhole(i->operand(0)->shape().element_type)) {
    return nullptr;
  }
  const std::string& direction = i->attrs().comparison_direction();
  const bool holds = direction == "EQ" || direction == "LE" || direction == "GE";
  Instruction* constant = hlo::AddIntConstant(i->parent(), PrimitiveType::kPred, holds ? 1 : 0);
  if (i->shape().IsScalar()) return constant;
  return i->parent()->Add(Opcode::kBroadcast, i->shape(), {constant}, "broadcast", i);
}

}  // namespace

Instruction* SimplifyArithmetic(Instruction* i) {
  const PrimitiveType type = i->shape().element_type;
  switch (i->opcode()) {
    case Opcode::kAdd: {
      if (Instruction* other = OtherThan(*i, 0.0)) return other;
      return hlo::IsFloating(type) ? OtherThan(*i, -0.0) : nullptr;
    }
    case Opcode::kSubtract:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return IsAll(*i->operand(1), 0.0) ? i->operand(0) : nullptr;
    case Opcode::kMultiply:
      if (Instruction* other = OtherThan(*i, 1)) return other;
      if (!IsWhole(type)) return nullptr;  // a NaN or infinity times zero is no zero
      if (IsAll(*i->operand(0), 0)) return i->operand(0);
      return IsAll(*i->operand(1), 0) ? i->operand(1) : nullptr;
    case Opcode::kDivide:
      return IsAll(*i->operand(1), 1) ? i->operand(0) : nullptr;
    case Opcode::kPower:
      if (IsAll(*i->operand(1), 1)) return i->operand(0);
      if (!IsAll(*i->operand(1), 2)) return nullptr;
      return i->parent()->Add(Opcode::kMultiply, i->shape(), {i->operand(0), i->operand(0)},
                              "multiply", i);
    case Opcode::kMaximum:
    case Opcode::kMinimum: {
      const bool least = i->opcode() == Opcode::kMaximum;
      if (IsExtreme(*i->operand(1), least)) return i->operand(0);
      if (IsExtreme(*i->operand(0), least)) return i->operand(1);
      return i->operand(0) == i->operand(1) ? i->operand(0) : nullptr;
    }
    case Opcode::kAnd:
      if (i->operand(0) == i->operand(1) || IsAllOnes(*i->operand(1))) return i->operand(0);
      if (IsAllOnes(*i->operand(0))) return i->operand(1);
      if (IsAll(*i->operand(0), 0)) return i->operand(0);
      return IsAll(*i->operand(1), 0) ? i->operand(1) : nullptr;
    case Opcode::kOr:
      if (i->operand(0) == i->operand(1) || IsAllOnes(*i->operand(0))) return i->operand(0);
      if (IsAllOnes(*i->operand(1))) return i->operand(1);
      return OtherThan(*i, 0);
    case Opcode::kXor:
      return OtherThan(*i, 0);
    case Opcode::kNot:
    case Opcode::kNegate:
      return i->operand(0)->opcode() == i->opcode() ? i->operand(0)->operand(0) : nullptr;
    case Opcode::kAbs:
      return i->operand(0)->opcode() == Opcode::kAbs ? i->operand(0) : nullptr;
    case Opcode::kConvert:
      return OfConvert(i);
    case Opcode::kSelect:
      return OfSelect(*i);
    case Opcode::kCompare:
      return OfCompare(i);
    default:
      return nullptr;
  }
}

}  // namespace tpusim::passes
