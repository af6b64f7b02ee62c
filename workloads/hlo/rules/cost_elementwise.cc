// Costs of elementwise operations: one operation per element, more for complex
// numbers.
#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/rules/cost_rules.h"

namespace tpusim::hlo::cost_rules {
namespace {

// Operations on the real and imaginary parts.
struct PerElement {
  int64_t flops, transcendentals;
};

// The operations on complex numbers z = a + bi; negative flops: no rule.
PerElement OfComplex(Opcode op) {
  switch (op) {
    case Opcode::kReal:
    case Opcode::kImag:
    case Opcode::kComplex:
      return {1, 0};
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kNegate:
    case Opcode::kCompare:
    case Opcode::kSelect:
    case Opcode::kConvert:
    case Opcode::kIsFinite:
      return {2, 0};
    case Opcode::kMultiply:  // 4 products, 2 sums
      return {6, 0};
    case Opcode::kDivide:  // a product by the conjugate, |z|^2, two quotients
      return {6 + 3 + 2, 0};
    case Opcode::kAbs:  // 2 squares, a sum, a root
    case Opcode::kSign:
      return {4, 1};
    case Opcode::kExponential:  // exp, cos, sin, 2 products
      return {5, 3};
    case Opcode::kLog:  // |z|^2, a logarithm, half of it, an atan2
      return {3 + 3, 2};
    case Opcode::kPower:  // exp(w log z)
      return {6 + 6 + 5, 5};
    default:
      return {-1, 0};
  }
}

}  // namespace

Result Elementwise(const Instruction& i, const CalleeCosts&) {
  const int64_t n = i.shape().ElementCount();
  const bool is_complex =
      IsComplex(i.shape().element_type) ||
      (!i.operands().empty() && IsComplex(i.operands().back()->shape().element_type));
  if (!is_complex) return Full(i, n, IsTranscendental(i.opcode()) ? n : 0);
  const PerElement cost = OfComplex(i.opcode());
  if (cost.flops < 0) {
    return NoRule(fmt::format("{}: no cost rule for {} of complex numbers", i.Describe(),
                              OpcodeName(i.opcode())));
  }
  return Full(i, Mul(n, cost.flops), Mul(n, cost.transcendentals));
}

}  // namespace tpusim::hlo::cost_rules
