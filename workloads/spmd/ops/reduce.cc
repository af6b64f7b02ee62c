// Reductions: which functions can be applied to partial results.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/sharding/factors/projection.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;
using hlo::Opcode;

// Several arrays are reduced together by one function of all of them, which no
// collective knows. The op gathers the partial results and reduces them once more.
std::optional<Bytes> ReduceOwn(const Instruction& global, const sharding::ShardingRule& rule,
                               const std::vector<sharding::Axes>& axes) {
  Bytes bytes(0);
  int64_t shards = 1;
  for (size_t f = 0; f < axes.size(); ++f) {
    if (rule.factors[f].kind == sharding::FactorKind::kPermutation) shards *= Product(axes[f]);
  }
  if (shards == 1) return bytes;
  const std::vector<const hlo::Shape*> leaves = hlo::Leaves(global.shape());
  for (size_t i = 0; i < leaves.size(); ++i) {
    bytes += ShardShape(*leaves[i], FromFactors(axes, rule.results[i], rule.factors)).ByteSize() *
             (shards - 1);
  }
  return bytes;
}

// Padding counts as further init values, which change nothing where partial
// results are combined.
absl::StatusOr<Instruction*> Reduce(const LocalOp& op) {
  Builder& builder = op.builder;
  std::vector<Instruction*> operands = op.operands;
  const size_t inputs = operands.size() / 2;
  for (size_t i = 0; i < inputs; ++i) operands[i] = MaskOperand(op, i, operands[inputs + i]);
  Instruction* local = SameOpOn(op, operands);
  if (inputs == 1) return local;
  sharding::Axes split;
  for (size_t f = 0; f < op.rule.factors.size(); ++f) {
    if (op.rule.factors[f].kind != sharding::FactorKind::kPermutation) continue;
    split = sharding::Concat(split, op.choice.axes[f]);
  }
  if (split.empty()) return local;
  for (size_t i = 0; i < inputs; ++i) {
    Instruction* part = builder.Element(local, static_cast<int64_t>(i));
    std::vector<int64_t> dims = part->shape().dims;
    dims.insert(dims.begin(), 1);
    operands[i] = builder.AllGather(builder.Reshape(part, dims), split, 0);
  }
  Instruction* result = SameOpOn(op, std::move(operands));
  hlo::SetDimensions(result, {0});
  return result;
}

// One associative op of both parameters. Every device starts from the init
// value, so it must not count twice: it has to be the op's neutral element,
// unless applying it again changes nothing.
std::optional<Combiner> ReduceCombiner(const Instruction& reduce) {
  if (reduce.operands().size() != 2 || reduce.called().size() != 1) return std::nullopt;
  const std::optional<Opcode> opcode = hlo::ReducerOperation(*reduce.called()[0]);
  if (!opcode) return std::nullopt;
  switch (*opcode) {
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      break;
    case Opcode::kAdd:
    case Opcode::kXor:
    case Opcode::kMultiply:
      if (!hlo::IsIdentity(*opcode, *reduce.operand(1))) return std::nullopt;
      break;
    default:
      return std::nullopt;
  }
  return Combiner{*opcode, reduce.shape().element_type};
}

}  // namespace tpusim::spmd::ops
