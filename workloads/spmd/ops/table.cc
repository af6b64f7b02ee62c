#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd {

using hlo::Instruction;
using hlo::Opcode;

Instruction* SameOp(const LocalOp& op) {
  Instruction* local = op.builder.AddLikeSource(op.shape, op.operands);
  std::vector<hlo::Computation*> called;
  for (const hlo::Computation* computation : op.global.called()) {
    called.push_back(op.builder.module()->CloneComputation(*computation));
  }
  local->set_called(std::move(called));
  return local;
}

absl::StatusOr<Instruction*> MakeLocal(const LocalOp& op) {
  switch (op.global.opcode()) {
    case Opcode::kIota:
      return ops::Iota(op);
    case Opcode::kSlice:
      return ops::Slice(op);
    case Opcode::kDynamicSlice:
      return ops::DynamicSlice(op);
    default:
      return SameOp(op);
  }
}

std::optional<Combiner> CombinerOf(const Instruction& global) {
  switch (global.opcode()) {
    case Opcode::kDot:
      return Combiner{Opcode::kAdd, global.shape().element_type};
    case Opcode::kReduce:
      return ops::ReduceCombiner(global);
    default:
      return std::nullopt;
  }
}

}  // namespace tpusim::spmd
