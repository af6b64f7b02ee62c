// Matrix products: partial sums where a contracted dimension is split.
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;

// Both operands are masked: zero times the padding of the other may be NaN.
absl::StatusOr<Instruction*> Dot(const LocalOp& op) {
  std::vector<Instruction*> operands = op.operands;
  for (size_t i = 0; i < 2; ++i) {
    operands[i] = MaskOperand(op, i, op.builder.Zero(operands[i]->shape().element_type));
  }
  Instruction* dot = SameOpOn(op, std::move(operands));
  sharding::Axes split;
  for (const sharding::Axes& axes : op.choice.axes) {
    split.insert(split.end(), axes.begin(), axes.end());
  }
  if (!split.empty()) {
    hlo::annotations::kSplitOver.Set(dot, ToString(split, op.builder.mesh()));
  }
  return dot;
}

}  // namespace tpusim::spmd::ops
