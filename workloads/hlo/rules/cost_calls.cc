// Costs of what calls computations.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/branches.h"
#include "workloads/hlo/rules/cost_rules.h"

namespace tpusim::hlo::cost_rules {
namespace {

// Bytes that a fusion reads of one of its parameters: all, unless every user
// only takes slices of it or updates it in place.
Bytes ReadOfParameter(const Instruction& parameter) {
  Bytes sliced(0);
  if (parameter.IsRoot()) return parameter.shape().ByteSize();
  for (const Instruction* user : parameter.users()) {
    const auto uses = std::count(user->operands().begin(), user->operands().end(), &parameter);
    const bool as_first = uses == 1 && user->operand(0) == &parameter;
    switch (user->opcode()) {
      case Opcode::kSlice:
      case Opcode::kDynamicSlice:
      case Opcode::kGather:
        if (!as_first) return parameter.shape().ByteSize();
        sliced = Add(sliced, user->shape().ByteSize());
        break;
      case Opcode::kDynamicUpdateSlice:
        if (!as_first) return parameter.shape().ByteSize();
        break;
      default:
        return parameter.shape().ByteSize();
    }
  }
  return std::min(sliced, parameter.shape().ByteSize());
}

Bytes WrittenByRoot(const Instruction& root) {
  if (root.opcode() == Opcode::kTuple) {
    Bytes sum(0);
    for (const Instruction* element : root.operands()) sum = Add(sum, WrittenByRoot(*element));
    return sum;
  }
  if (root.opcode() == Opcode::kBitcast &&
      root.operand(0)->opcode() == Opcode::kDynamicUpdateSlice) {
    return WrittenByRoot(*root.operand(0));
  }
  if (root.opcode() == Opcode::kDynamicUpdateSlice &&
      root.operand(0)->opcode() == Opcode::kParameter) {
    return root.operand(1)->shape().ByteSize();
  }
  return root.shape().ByteSize();
}

}  // namespace

// Arithmetic of the body, bytes of the boundary: values inside stay in registers.
Result Fusion(const Instruction& i, const CalleeCosts& callees) {
  const Computation& body = *i.called()[0];
  Cost cost = callees.at(&body);
  cost.bytes_read = Bytes(0);
  for (const Instruction* parameter : body.parameters()) {
    cost.bytes_read = Add(cost.bytes_read, ReadOfParameter(*parameter));
  }
  cost.bytes_written = WrittenByRoot(*body.root());
  return cost;
}

Result SumOfCalled(const Instruction& i, const CalleeCosts& callees) {
  Cost sum;
  for (const Computation* called : i.called()) {
    Accumulate(callees.at(called), &sum);
  }
  return sum;
}

// The most that any branch takes that may run, in each figure.
Result Conditional(const Instruction& i, const CalleeCosts& callees) {
  Cost most;
  for (const Computation* branch : RunBy(i)) {
    const Cost& cost = callees.at(branch);
    most.flops = std::max(most.flops, cost.flops);
    most.transcendentals = std::max(most.transcendentals, cost.transcendentals);
    most.bytes_read = std::max(most.bytes_read, cost.bytes_read);
    most.bytes_written = std::max(most.bytes_written, cost.bytes_written);
  }
  return most;
}

}  // namespace tpusim::hlo::cost_rules
