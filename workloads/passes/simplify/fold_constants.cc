// Operations on scalar constants, done now.
//
// Only what has one right answer: whole numbers modulo their width, and of floats the basic
// operations, which double precision rounded once more gives as the type itself would.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/simplify/rules.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

bool HasLiterals(PrimitiveType type) {
  if (type == PrimitiveType::kPred) return true;
  if (hlo::IsIntegral(type)) return hlo::BitWidth(type) >= 8;
  return type == PrimitiveType::kBf16 || type == PrimitiveType::kF16 ||
         type == PrimitiveType::kF32 || type == PrimitiveType::kF64;
}

bool IsNumber(PrimitiveType type) { return hlo::IsIntegral(type) || type == PrimitiveType::kPred; }

// The low bits of `value`, as the type reads them.
int64_t Wrapped(PrimitiveType type, uint64_t value) {
  if (type == PrimitiveType::kPred) return value != 0;
  const int64_t bits = hlo::BitWidth(type);
  if (bits == 64) return static_cast<int64_t>(value);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  value &= mask;
  if (hlo::IsSignedIntegral(type) && (value >> (bits - 1)) != 0) value |= ~mask;
  return static_cast<int64_t>(value);
}

template <typename T>
std::optional<bool> Compared(const std::string& direction, T a, T b) {
  if (direction == "EQ") return a == b;
  if (direction == "NE") return a != b;
  if (direction == "LT") return a < b;
  if (direction == "LE") return a <= b;
  if (direction == "GT") return a > b;
  if (direction == "GE") return a >= b;
  return std::nullopt;
}

std::optional<int64_t> OfWhole(const Instruction& i, int64_t a, int64_t b) {
  const PrimitiveType type = i.operand(0)->shape().element_type;
  const bool is_signed = hlo::IsSignedIntegral(type);
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (i.opcode()) {
    case Opcode::kAdd:
      if (type == PrimitiveType::kPred) return (a | b) != 0;
      return Wrapped(type, ua + ub);
    case Opcode::kSubtract:
      return Wrapped(type, ua - ub);
    case Opcode::kMultiply:
      return Wrapped(type, ua * ub);
    case Opcode::kDivide:
      if (b == 0 || b == -1) return std::nullopt;
      return is_signed ? a / b : static_cast<int64_t>(ua / ub);
    case Opcode::kRemainder:
      if (b == 0 || b == -1) return std::nullopt;
      return is_signed ? a % b : static_cast<int64_t>(ua % ub);
    case Opcode::kMaximum:
      return is_signed ? std::max(a, b) : static_cast<int64_t>(std::max(ua, ub));
    case Opcode::kMinimum:
      return is_signed ? std::min(a, b) : static_cast<int64_t>(std::min(ua, ub));
    case Opcode::kAnd:
      return a & b;
    case Opcode::kOr:
      return a | b;
    case Opcode::kXor:
      return Wrapped(type, ua ^ ub);
    case Opcode::kNegate:
      return Wrapped(type, uint64_t{0} - ua);
    case Opcode::kNot:
      return type == PrimitiveType::kPred ? int64_t{a == 0} : Wrapped(type, ~ua);
    case Opcode::kCompare:
      return is_signed ? Compared(i.attrs().comparison_direction(), a, b)
                       : Compared(i.attrs().comparison_direction(), ua, ub);
    default:
      return std::nullopt;
  }
}

std::optional<double> OfReal(const Instruction& i, double a, double b) {
  switch (i.opcode()) {
    case Opcode::kAdd:
      return a + b;
    case Opcode::kSubtract:
      return a - b;
    case Opcode::kMultiply:
      return a * b;
    case Opcode::kDivide:
      return a / b;
    case Opcode::kNegate:
      return -a;
    case Opcode::kAbs:
      return std::fabs(a);
    case Opcode::kSqrt:
      return std::sqrt(a);
    default:
      return std::nullopt;
  }
}

Instruction* Converted(Instruction* i) {
  const Instruction& from = *i->operand(0);
  const PrimitiveType to = i->shape().element_type;
  const PrimitiveType type = from.shape().element_type;
  if (IsNumber(type)) {
    const auto value = hlo::ScalarIntConstant(from);
    if (!value.has_value()) return nullptr;
    if (to == PrimitiveType::kPred) return nullptr;
    if (IsNumber(to)) {
      return hlo::AddIntConstant(i->parent(), to, Wrapped(to, static_cast<uint64_t>(*value)));
    }
    // Rounded once only if a double holds it.
    if (std::abs(static_cast<double>(*value)) >= 0x1p53) return nullptr;
    if (*value < 0 && !hlo::IsSignedIntegral(type)) return nullptr;
    return hlo::AddConstant(i->parent(), to, static_cast<double>(*value));
  }
  const auto value = hlo::ScalarConstant(from);
  if (!value.has_value() || IsNumber(to)) return nullptr;
  // f64 to bf16 goes by way of f32 in the literal: two roundings.
  if (type == PrimitiveType::kF64 && to != PrimitiveType::kF32) return nullptr;
  return hlo::AddConstant(i->parent(), to, *value);
}

}  // namespace

Instruction* FoldConstants(Instruction* i) {
  if (!i->shape().IsScalar() || i->operands().empty() || i->operands().size() > 2 ||
      !HasLiterals(i->shape().element_type) || !hlo::IsElementwise(i->opcode())) {
    return nullptr;
  }
  for (const Instruction* operand : i->operands()) {
    if (operand->opcode() != Opcode::kConstant || !operand->shape().IsScalar() ||
        !HasLiterals(operand->shape().element_type)) {
      return nullptr;
    }
  }
  if (i->opcode() == Opcode::kConvert) return Converted(i);
  const Instruction& first = *i->operand(0);
  const Instruction& last = *i->operands().back();
  if (IsNumber(first.shape().element_type)) {
    const auto a = hlo::ScalarIntConstant(first), b = hlo::ScalarIntConstant(last);
    if (!a.has_value() || !b.has_value()) return nullptr;
    const auto value = OfWhole(*i, *a, *b);
    return value.has_value() ? hlo::AddIntConstant(i->parent(), i->shape().element_type, *value)
                             : nullptr;
  }
  const auto a = hlo::ScalarConstant(first), b = hlo::ScalarConstant(last);
  if (!a.has_value() || !b.has_value()) return nullptr;
  if (i->opcode() == Opcode::kCompare) {
    const auto holds = Compared(i->attrs().comparison_direction(), *a, *b);
    if (!holds.has_value() || !i->attrs().comparison_type().empty()) {
      if (i->attrs().comparison_type() != "FLOAT") return nullptr;
    }
    return holds.has_value()
               ? hlo::AddIntConstant(i->parent(), PrimitiveType::kPred, *holds ? 1 : 0)
               : nullptr;
  }
  const auto value = OfReal(*i, *a, *b);
  if (!value.has_value() || std::isnan(*value)) return nullptr;  // NaNs have bits of their own
  return hlo::AddConstant(i->parent(), i->shape().element_type, *value);
}

}  // namespace tpusim::passes
