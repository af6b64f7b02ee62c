// Elementwise operations on broadcasts.
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/simplify/simplify.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Opcode;

// Operands are broadcast from one shape over the same dimensions, or from scalars.
Instruction* SinkBroadcast(Instruction* i) {
  if (!hlo::IsElementwise(i->opcode()) || !i->shape().IsArray() || i->shape().IsScalar() ||
      i->operands().empty() || i->opcode() == Opcode::kStochasticConvert) {
    return nullptr;
  }
  const Instruction* widest = nullptr;  // the broadcast of most dimensions
  for (const Instruction* operand : i->operands()) {
    if (operand->opcode() != Opcode::kBroadcast || operand->shape().dims != i->shape().dims) {
      return nullptr;
    }
    if (widest == nullptr ||
        operand->operand(0)->shape().rank() > widest->operand(0)->shape().rank()) {
      widest = operand;
    }
  }
  const hlo::Shape& small = widest->operand(0)->shape();
  if (small.ElementCount() >= i->shape().ElementCount()) return nullptr;
  for (const Instruction* operand : i->operands()) {
    const hlo::Shape& shape = operand->operand(0)->shape();
    if (shape.IsScalar()) continue;
    if (shape.dims != small.dims || hlo::Dimensions(*operand) != hlo::Dimensions(*widest)) {
      return nullptr;
    }
  }
  hlo::Computation* computation = i->parent();
  std::vector<Instruction*> operands;
  for (const Instruction* operand : i->operands()) {
    Instruction* value = operand->operand(0);
    if (value->shape().dims != small.dims) {
      value = computation->Add(Opcode::kBroadcast,
                               hlo::MakeShape(value->shape().element_type, small.dims), {value},
                               "broadcast");
    }
    operands.push_back(value);
  }
  Instruction* inner = computation->Add(
      i->opcode(), hlo::MakeShape(i->shape().element_type, small.dims), operands, i->name(), i);
  Instruction* broadcast =
      computation->Add(Opcode::kBroadcast, i->shape(), {inner}, "broadcast", i);
  hlo::SetDimensions(broadcast, hlo::Dimensions(*widest));
  return broadcast;
}

}  // namespace tpusim::passes
