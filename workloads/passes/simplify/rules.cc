#include <cmath>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/simplify/simplify.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Opcode;

const Instruction* ConstantElement(const Instruction& i) {
  const Instruction* value = &i;
  while (value->opcode() == Opcode::kBroadcast || value->opcode() == Opcode::kReshape) {
    value = value->operand(0);
  }
  const bool one = value->opcode() == Opcode::kConstant && value->shape().IsScalar();
  return one ? value : nullptr;
}

bool IsAll(const Instruction& i, double value) {
  const Instruction* constant = ConstantElement(i);
  if (constant == nullptr) return false;
  const auto found = hlo::ScalarConstant(*constant);
  return found.has_value() && *found == value && std::signbit(*found) == std::signbit(value);
}

}  // namespace tpusim::passes
