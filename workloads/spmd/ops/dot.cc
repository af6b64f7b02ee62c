// Matrix products: partial sums where a contracted dimension is split.
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;

// Both operands are masked: zero times the padding of the other may be NaN.
absl::StatusOr<Instruction*> Dot(const LocalOp& op) {
  std::vector<Instruction*> operands = op.operands;
  for (size_t i = 0; i < 2; ++i) {
    operands[i] = MaskOperand(op, i, op.builder.Zero(operands[i]->shape().element_type));
  }
  return SameOpOn(op, std::move(operands));
}

std::optional<Combiner> DotCombiner(const Instruction& dot) {
  return Combiner{hlo::Opcode::kAdd, dot.shape().element_type};
}

}  // namespace tpusim::spmd::ops
