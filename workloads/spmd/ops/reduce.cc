// Reductions: which functions can be applied to partial results.
#include "workloads/hlo/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;
using hlo::Opcode;

// Padding counts as further init values, which change nothing where partial
// results are combined.
absl::StatusOr<Instruction*> Reduce(const LocalOp& op) {
  std::vector<Instruction*> operands = op.operands;
  const size_t inputs = operands.size() / 2;
  for (size_t i = 0; i < inputs; ++i) operands[i] = MaskOperand(op, i, operands[inputs + i]);
  return SameOpOn(op, std::move(operands));
}

// One associative op of both parameters. Every device starts from the init
// value, so it must not count twice: it has to be the op's neutral element,
// unless applying it again changes nothing.
std::optional<Combiner> ReduceCombiner(const Instruction& reduce) {
  if (reduce.operands().size() != 2 || reduce.called().size() != 1) return std::nullopt;
  const Instruction* root = reduce.called()[0]->root();
  if (root->operands().size() != 2 || root->operand(0) == root->operand(1) ||
      root->operand(0)->opcode() != Opcode::kParameter ||
      root->operand(1)->opcode() != Opcode::kParameter) {
    return std::nullopt;
  }
  const std::optional<double> init = hlo::ScalarConstant(*reduce.operand(1));
  switch (root->opcode()) {
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      break;
    case Opcode::kAdd:
    case Opcode::kXor:
      if (init != 0.0) return std::nullopt;
      break;
    case Opcode::kMultiply:
      if (init != 1.0) return std::nullopt;
      break;
    default:
      return std::nullopt;
  }
  return Combiner{root->opcode(), reduce.shape().element_type};
}

}  // namespace tpusim::spmd::ops
