#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding {
namespace rules {

ShardingRule EmptyRule(const hlo::Instruction& instruction) {
  ShardingRule rule;
  for (const hlo::Instruction* operand : instruction.operands()) {
    rule.operands.emplace_back(operand->shape().rank());
  }
  for (const hlo::Shape* leaf : hlo::Leaves(instruction.shape())) {
    rule.results.emplace_back(leaf->rank());
  }
  return rule;
}

Dims At(size_t dim, std::initializer_list<std::span<TensorFactors>> tensors) {
  Dims dims;
  for (const std::span<TensorFactors> list : tensors) {
    for (TensorFactors& tensor : list) {
      if (dim < tensor.size()) dims.push_back(&tensor[dim]);
    }
  }
  return dims;
}

void Tie(ShardingRule& rule, int64_t size, FactorKind kind, const Dims& dims) {
  if (size == 1) return;
  const int32_t factor = rule.AddFactor(size, kind);
  for (std::vector<int32_t>* dim : dims) dim->push_back(factor);
}

ShardingRule AllAlike(const hlo::Instruction& instruction, const std::vector<int64_t>& along,
                      FactorKind kind) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<int64_t>& dims = hlo::Leaves(instruction.shape())[0]->dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool other = std::ranges::find(along, static_cast<int64_t>(d)) != along.end();
    Tie(rule, other ? instruction.operand(0)->shape().dims[d] : dims[d],
        other ? kind : FactorKind::kPassThrough, At(d, {rule.operands, rule.results}));
  }
  return rule;
}

void TieRest(ShardingRule& rule, const hlo::Instruction& instruction) {
  const auto rest = [&](const hlo::Shape& shape, TensorFactors& tensor) {
    for (size_t d = 0; d < tensor.size(); ++d) {
      if (tensor[d].empty()) Tie(rule, shape.dims[d], FactorKind::kNeedReplication, {&tensor[d]});
    }
  };
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    rest(instruction.operand(i)->shape(), rule.operands[i]);
  }
  const std::vector<const hlo::Shape*> leaves = hlo::Leaves(instruction.shape());
  for (size_t i = 0; i < leaves.size(); ++i) rest(*leaves[i], rule.results[i]);
}

// Everybody does all of it (a random generator's state advances by the whole).
absl::StatusOr<ShardingRule> Whole(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  TieRest(rule, instruction);
  return rule;
}

namespace {

struct OpcodeRule {
  hlo::Opcode opcode;
  Rule* rule;
  RulePriority priority;
};

// The rules by opcode name. Elementwise opcodes are flagged as such in the opcode table and need no
// line.
constexpr OpcodeRule kTable[] = {
    {hlo::Opcode::kAllGather, Collective, RulePriority::kGeneral},
    {hlo::Opcode::kAllReduce, Collective, RulePriority::kElementwise},
    {hlo::Opcode::kAllToAll, Collective, RulePriority::kGeneral},
    {hlo::Opcode::kBitcastConvert, Elementwise, RulePriority::kElementwise},
    {hlo::Opcode::kBroadcast, Broadcast, RulePriority::kBackwardFirst},
    {hlo::Opcode::kCholesky, MatrixBatch, RulePriority::kGeneral},
    {hlo::Opcode::kCollectiveBroadcast, Collective, RulePriority::kElementwise},
    {hlo::Opcode::kCollectivePermute, Collective, RulePriority::kElementwise},
    {hlo::Opcode::kConcatenate, Concatenate, RulePriority::kGeneral},
    {hlo::Opcode::kConstant, Elementwise, RulePriority::kGeneral},
    {hlo::Opcode::kConvolution, Convolution, RulePriority::kGeneral},
    {hlo::Opcode::kCopy, Elementwise, RulePriority::kElementwise},
    {hlo::Opcode::kCustomCall, CustomCall, RulePriority::kGeneral},
    {hlo::Opcode::kDot, Dot, RulePriority::kGeneral},
    {hlo::Opcode::kDynamicSlice, DynamicSlice, RulePriority::kForwardFirst},
    {hlo::Opcode::kDynamicUpdateSlice, DynamicUpdateSlice, RulePriority::kForwardFirst},
    {hlo::Opcode::kFft, Fft, RulePriority::kGeneral},
    {hlo::Opcode::kGather, Gather, RulePriority::kGeneral},
    {hlo::Opcode::kIota, Elementwise, RulePriority::kGeneral},
    {hlo::Opcode::kPad, Pad, RulePriority::kGeneral},
    {hlo::Opcode::kPartitionId, Elementwise, RulePriority::kGeneral},
    {hlo::Opcode::kRaggedAllToAll, RaggedAllToAll, RulePriority::kGeneral},
    {hlo::Opcode::kRaggedDot, RaggedDot, RulePriority::kGeneral},
    {hlo::Opcode::kReduce, Reduce, RulePriority::kGeneral},
    {hlo::Opcode::kReduceScatter, Collective, RulePriority::kGeneral},
    {hlo::Opcode::kReduceWindow, ReduceWindow, RulePriority::kGeneral},
    {hlo::Opcode::kReplicaId, Elementwise, RulePriority::kGeneral},
    {hlo::Opcode::kReshape, Reshape, RulePriority::kElementwise},
    {hlo::Opcode::kReverse, Reverse, RulePriority::kGeneral},
    {hlo::Opcode::kRng, Whole, RulePriority::kGeneral},
    {hlo::Opcode::kRngBitGenerator, Whole, RulePriority::kGeneral},
    {hlo::Opcode::kScatter, Scatter, RulePriority::kGeneral},
    {hlo::Opcode::kSelectAndScatter, SelectAndScatter, RulePriority::kGeneral},
    {hlo::Opcode::kSlice, Slice, RulePriority::kGeneral},
    {hlo::Opcode::kSort, Sort, RulePriority::kGeneral},
    {hlo::Opcode::kTopk, TopK, RulePriority::kGeneral},
    {hlo::Opcode::kTranspose, Transpose, RulePriority::kElementwise},
    {hlo::Opcode::kTriangularSolve, TriangularSolve, RulePriority::kGeneral},
};

const OpcodeRule* Find(hlo::Opcode opcode) {
  for (const OpcodeRule& entry : kTable) {
    if (entry.opcode == opcode) return &entry;
  }
  return nullptr;
}

}  // namespace
}  // namespace rules

absl::StatusOr<ShardingRule> RuleFor(const hlo::Instruction& instruction) {
  if (hlo::IsElementwise(instruction.opcode())) return rules::Elementwise(instruction);
  const rules::OpcodeRule* entry = rules::Find(instruction.opcode());
  if (entry == nullptr) {
    return NoRule(fmt::format("{} has no sharding rule, so it cannot be partitioned: {}",
                              hlo::OpcodeName(instruction.opcode()), instruction.Describe()));
  }
  return entry->rule(instruction);
}

RulePriority PriorityOf(hlo::Opcode opcode) {
  if (hlo::IsElementwise(opcode)) return RulePriority::kElementwise;
  const rules::OpcodeRule* entry = rules::Find(opcode);
  return entry == nullptr ? RulePriority::kGeneral : entry->priority;
}

}  // namespace tpusim::sharding
