#include "configs/units.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct Entry {
  Opcode opcode;
  OpFamily family;
};

// By opcode name. What is not here is itself on smaller shapes.
constexpr Entry kTable[] = {
    {Opcode::kDot, {.make = ops::Dot, .combiner = ops::DotCombiner}},
    {Opcode::kDynamicSlice, {.make = ops::DynamicSlice}},
    {Opcode::kIota, {.make = ops::Iota}},
    {Opcode::kReduce, {.make = ops::Reduce, .combiner = ops::ReduceCombiner}},
    {Opcode::kSlice, {.make = ops::Slice}},
};
constexpr OpFamily kSame = {.make = SameOp};

}  // namespace

const OpFamily& FamilyOf(const Instruction& global) {
  for (const Entry& entry : kTable) {
    if (entry.opcode == global.opcode()) return entry.family;
  }
  return kSame;
}

std::optional<Combiner> CombinerOf(const Instruction& global) {
  const OpFamily& family = FamilyOf(global);
  return family.combiner == nullptr ? std::nullopt : family.combiner(global);
}

Instruction* SameOpOn(const LocalOp& op, hlo::Shape shape, std::vector<Instruction*> operands) {
  Instruction* local = op.builder.AddLikeSource(std::move(shape), std::move(operands));
  std::vector<hlo::Computation*> called;
  for (const hlo::Computation* computation : op.global.called()) {
    called.push_back(op.builder.module()->CloneComputation(*computation));
  }
  local->set_called(std::move(called));
  return local;
}

Instruction* SameOpOn(const LocalOp& op, std::vector<Instruction*> operands) {
  return SameOpOn(op, op.shape, std::move(operands));
}

absl::StatusOr<Instruction*> SameOp(const LocalOp& op) { return SameOpOn(op, op.operands); }

const sharding::Axes& OperandAxes(const LocalOp& op, size_t i, int64_t dim) {
  return op.choice.operands[i].dims[dim].axes;
}

Instruction* MaskOperand(const LocalOp& op, size_t i, Instruction* fill) {
  Instruction* value = op.operands[i];
  const hlo::Shape& shape = op.global.operand(i)->shape();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    for (int32_t factor : op.rule.operands[i][d]) {
      if (op.rule.factors[factor].kind == sharding::FactorKind::kPassThrough) continue;
      value = op.builder.Mask(value, d, OperandAxes(op, i, d), shape.dims[d], fill);
      break;
    }
  }
  return value;
}

}  // namespace tpusim::spmd
