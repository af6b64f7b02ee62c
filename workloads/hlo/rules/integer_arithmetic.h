// Arithmetic on whole numbers as HLO defines it.
//
// Results are modulo the width of the type; numbers without a sign are compared and divided
// as such. Constant folding and the lowering that asks what a scalar will be on a device use the
// same.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_INTEGER_ARITHMETIC_H_
#define TPUSIM_WORKLOADS_HLO_RULES_INTEGER_ARITHMETIC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Integers and pred.
bool IsWholeNumber(PrimitiveType type);

// The low bits of `value`, as the type reads them (sign-extended to 64 bits if it has a
// sign); of pred whether it is other than 0.
int64_t WrapInteger(PrimitiveType type, uint64_t value);

// a `direction` b ("LT"); nullopt: no such direction.
template <typename T>
std::optional<bool> Compare(const std::string& direction, T a, T b) {
  if (direction == "EQ") return a == b;
  if (direction == "NE") return a != b;
  if (direction == "LT") return a < b;
  if (direction == "LE") return a <= b;
  if (direction == "GT") return a > b;
  if (direction == "GE") return a >= b;
  return std::nullopt;
}

// One element of an elementwise instruction with one or two operands of whole numbers (of
// one, `b` plays no part). nullopt: it has no rule here, or what the result is depends on
// what computes it (divisions by zero, of the least number by -1).
std::optional<int64_t> EvaluateInteger(const Instruction& instruction, int64_t a, int64_t b);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_INTEGER_ARITHMETIC_H_
