#include "configs/units.h"
#include "workloads/sharding/factors/projection.h"
#include "workloads/sharding/rules/rolls.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct OpcodeFamily {
  Opcode opcode;
  OpFamily family;
};

// Sums, of values that may overlap or of which all but one are zero.
std::optional<Combiner> Products(const Instruction& global) {
  return Combiner{Opcode::kAdd, global.shape().element_type};
}
std::optional<Combiner> Parts(const Instruction& global) {
  return SumOf(global.shape().element_type);
}

// The makers by opcode name. An op that is not here is itself on smaller shapes.
constexpr OpcodeFamily kTable[] = {
    {Opcode::kConcatenate, {.make = ops::Concatenate, .own = ops::ConcatenateOwn}},
    {Opcode::kConvolution,
     {.make = ops::Convolution, .combiner = Products, .own = ops::ConvolutionOwn}},
    {Opcode::kDot, {.make = ops::Dot, .combiner = Products}},
    {Opcode::kDynamicSlice, {.make = ops::DynamicSlice}},
    {Opcode::kDynamicUpdateSlice, {.make = ops::DynamicUpdateSlice, .own = ops::DynamicUpdateSliceOwn}},
    {Opcode::kGather, {.make = ops::Gather, .combiner = Parts}},
    {Opcode::kIota, {.make = ops::Iota}},
    {Opcode::kPad, {.make = ops::Pad, .own = ops::PadOwn}},
    {Opcode::kRaggedDot, {.make = ops::RaggedDot, .combiner = Products, .own = ops::RaggedDotOwn}},
    {Opcode::kReduce,
     {.make = ops::Reduce, .combiner = ops::ReduceCombiner, .own = ops::ReduceOwn}},
    {Opcode::kReduceWindow, {.make = ops::ReduceWindow, .own = ops::ReduceWindowOwn}},
    {Opcode::kReverse, {.make = ops::Reverse, .own = ops::ReverseOwn}},
    {Opcode::kScatter, {.make = ops::Scatter, .combiner = ops::ScatterCombiner}},
    {Opcode::kSelectAndScatter, {.make = ops::SelectAndScatter, .own = ops::SelectAndScatterOwn}},
    {Opcode::kSlice, {.make = ops::Slice, .combiner = Parts, .own = ops::SliceOwn}},
    {Opcode::kTopk, {.make = ops::TopK, .own = ops::TopKOwn}},
};
constexpr OpFamily kSame = {.make = SameOp};

// Custom calls by target.
struct TargetFamily {
  std::string_view name;
  OpFamily family;
};
constexpr TargetFamily kTargets[] = {
    {"TopK", {.make = ops::TopK, .own = ops::TopKOwn}},
    {sharding::kRollTarget, {.make = ops::Roll, .own = ops::RollOwn}},
};

}  // namespace

const OpFamily& FamilyOf(const Instruction& global) {
  if (global.opcode() == Opcode::kCustomCall) {
    for (const TargetFamily& target : kTargets) {
      if (target.name == global.attrs().custom_call_target()) return target.family;
    }
  }
  for (const OpcodeFamily& entry : kTable) {
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

hlo::Shape LocalOperandShape(const Instruction& global, const sharding::ShardingRule& rule,
                             const std::vector<sharding::Axes>& axes, size_t i) {
  return ShardShape(global.operand(i)->shape(), FromFactors(axes, rule.operands[i], rule.factors));
}

Bytes LineBytes(const hlo::Shape& local, int64_t d) {
  hlo::Shape line = local;
  line.dims[d] = 1;
  return line.ByteSize();
}

const sharding::Axes* MovedAxes(const sharding::ShardingRule& rule,
                                const std::vector<sharding::Axes>& axes,
                                const std::vector<int32_t>& dim) {
  const int32_t f = FactorOf(dim);
  const bool passes =
      f < 0 || rule.factors[f].kind == sharding::FactorKind::kPassThrough || axes[f].empty();
  return passes ? nullptr : &axes[f];
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
