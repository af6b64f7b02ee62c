#include "workloads/hlo/rules/integer_arithmetic.h"

#include <algorithm>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

// Neither by zero nor the least number by -1, which has no negative.
bool Divides(PrimitiveType type, int64_t a, int64_t b) {
  if (b == 0) return false;
  return !IsSignedIntegral(type) || b != -1 || a != -(int64_t{1} << (BitWidth(type) - 2)) * 2;
}

bool ShiftsWithin(PrimitiveType type, int64_t b) {
  return IsIntegral(type) && b >= 0 && b < BitWidth(type);
}

}  // namespace

bool IsWholeNumber(PrimitiveType type) { return IsIntegral(type) || type == PrimitiveType::kPred; }

int64_t WrapInteger(PrimitiveType type, uint64_t value) {
  if (type == PrimitiveType::kPred) return value != 0;
  const int64_t bits = BitWidth(type);
  if (bits == 64) return static_cast<int64_t>(value);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  value &= mask;
  if (IsSignedIntegral(type) && (value >> (bits - 1)) != 0) value |= ~mask;
  return static_cast<int64_t>(value);
}

std::optional<int64_t> EvaluateInteger(const Instruction& i, int64_t a, int64_t b) {
  const PrimitiveType type = i.operand(0)->shape().element_type;
  const bool is_signed = IsSignedIntegral(type);
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (i.opcode()) {
    case Opcode::kAdd:
      if (type == PrimitiveType::kPred) return (a | b) != 0;
      return WrapInteger(type, ua + ub);
    case Opcode::kSubtract:
      return WrapInteger(type, ua - ub);
    case Opcode::kMultiply:
      return WrapInteger(type, ua * ub);
    case Opcode::kDivide:
      if (!Divides(type, a, b)) return std::nullopt;
      return is_signed ? a / b : static_cast<int64_t>(ua / ub);
    case Opcode::kRemainder:
      if (!Divides(type, a, b)) return std::nullopt;
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
      return WrapInteger(type, ua ^ ub);
    case Opcode::kNegate:
      return WrapInteger(type, uint64_t{0} - ua);
    case Opcode::kAbs:
      return is_signed && a < 0 ? WrapInteger(type, uint64_t{0} - ua) : a;
    case Opcode::kSign:
      return is_signed ? (a > 0 ? 1 : 0) - (a < 0 ? 1 : 0) : int64_t{a != 0};
    case Opcode::kNot:
      return type == PrimitiveType::kPred ? int64_t{a == 0} : WrapInteger(type, ~ua);
    case Opcode::kShiftLeft:
      return ShiftsWithin(type, b) ? std::optional(WrapInteger(type, ua << b)) : std::nullopt;
    case Opcode::kShiftRightLogical: {
      const int64_t bits = BitWidth(type);
      const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      return ShiftsWithin(type, b) ? std::optional(WrapInteger(type, (ua & mask) >> b))
                                   : std::nullopt;
    }
    case Opcode::kShiftRightArithmetic:
      return ShiftsWithin(type, b) && is_signed ? std::optional(a >> b) : std::nullopt;
    case Opcode::kConvert:
      return IsWholeNumber(i.shape().element_type)
                 ? std::optional(WrapInteger(i.shape().element_type, ua))
                 : std::nullopt;
    case Opcode::kCompare:
      return is_signed ? Compare(i.attrs().comparison_direction(), a, b)
                       : Compare(i.attrs().comparison_direction(), ua, ub);
    default:
      return std::nullopt;
  }
}

}  // namespace tpusim::hlo
