// Evaluates operations on scalar constants.
//
// It folds only what has one right answer: whole numbers modulo their width, and the basic
// operations on floats, which double precision rounded once more gives as the type itself would.
// Integers that follow from constants through loops and calls stay as they are; analyses ask
// hlo::KnownValues for them.
#include <cmath>
#include <cstdint>
#include <optional>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/integer_arithmetic.h"
#include "workloads/passes/simplify/simplify.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

bool HasLiterals(PrimitiveType type) {
  if (type == PrimitiveType::kPred) return true;
  if (hlo::IsIntegral(type)) return hlo::BitWidth(type) >= 8;  // number: bits of a type
  return type == PrimitiveType::kBf16 || type == PrimitiveType::kF16 ||
         type == PrimitiveType::kF32 || type == PrimitiveType::kF64;
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
  if (hlo::IsWholeNumber(type)) {
    const auto value = hlo::ScalarIntConstant(from);
    if (!value.has_value()) return nullptr;
    if (to == PrimitiveType::kPred) return nullptr;
    if (hlo::IsWholeNumber(to)) {
      return hlo::AddIntConstant(i->parent(), to,
                                 hlo::WrapInteger(to, static_cast<uint64_t>(*value)));
    }
    // Rounded once only if a double holds it.
    if (std::abs(static_cast<double>(*value)) >= 0x1p53) return nullptr;
    if (*value < 0 && !hlo::IsSignedIntegral(type)) return nullptr;
    return hlo::AddConstant(i->parent(), to, static_cast<double>(*value));
  }
  const auto value = hlo::ScalarConstant(from);
  if (!value.has_value() || hlo::IsWholeNumber(to)) return nullptr;
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
  if (hlo::IsWholeNumber(first.shape().element_type)) {
    const auto a = hlo::ScalarIntConstant(first), b = hlo::ScalarIntConstant(last);
    if (!a.has_value() || !b.has_value()) return nullptr;
    const auto value = hlo::EvaluateInteger(*i, *a, *b);
    return value.has_value() ? hlo::AddIntConstant(i->parent(), i->shape().element_type, *value)
                             : nullptr;
  }
  const auto a = hlo::ScalarConstant(first), b = hlo::ScalarConstant(last);
  if (!a.has_value() || !b.has_value()) return nullptr;
  if (i->opcode() == Opcode::kCompare) {
    const auto holds = hlo::Compare(i->attrs().comparison_direction(), *a, *b);
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
