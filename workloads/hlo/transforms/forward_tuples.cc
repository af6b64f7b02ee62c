#include "workloads/hlo/transforms/forward_tuples.h"

namespace tpusim::hlo {

void ForwardTuples(Computation& computation) {
  for (Instruction* element : computation.PostOrder()) {
    if (element->opcode() != Opcode::kGetTupleElement ||
        element->operand(0)->opcode() != Opcode::kTuple) {
      continue;
    }
    element->ReplaceAllUsesWith(element->operand(0)->operand(element->attrs().tuple_index()));
  }
}

void ForwardAllTuples(Module& module) {
  for (Computation* computation : module.computations()) {
    ForwardTuples(*computation);
    computation->RemoveDead();
  }
  module.RemoveUnreachable();
}

}  // namespace tpusim::hlo
