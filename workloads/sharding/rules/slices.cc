// Static slices, pads, reversals and concatenations: elements keep their order or
// are mirrored, so a split dimension can stay split if neighbours help.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {
namespace {

// A dimension that both sides have, with different sizes or contents. A single
// element is not split: it is one device's, and a sum over all of them
// brings it to everybody.
void TieMoved(ShardingRule& rule, int64_t in, int64_t out, std::vector<int32_t>* from,
              std::vector<int32_t>* to) {
  if (in != 1 && out != 1) {
    Tie(rule, in, FactorKind::kPermutation, {from, to});
    return;
  }
  Tie(rule, in, FactorKind::kReduction, {from});
  Tie(rule, out, FactorKind::kPassThrough, {to});
}

}  // namespace

absl::StatusOr<ShardingRule> Slice(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    const int64_t in = instruction.operand(0)->shape().dims[d], out = instruction.shape().dims[d];
    if (in == out) {
      Tie(rule, in, FactorKind::kPassThrough, {&rule.operands[0][d], &rule.results[0][d]});
    } else {
      TieMoved(rule, in, out, &rule.operands[0][d], &rule.results[0][d]);
    }
  }
  return rule;
}

absl::StatusOr<ShardingRule> Pad(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<hlo::PaddingDim> padding = hlo::GetPadding(instruction);
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    const int64_t in = instruction.operand(0)->shape().dims[d], out = instruction.shape().dims[d];
    if (padding[d].low == 0 && padding[d].high == 0 && in == out) {
      Tie(rule, in, FactorKind::kPassThrough, {&rule.operands[0][d], &rule.results[0][d]});
    } else if (in == 1) {
      // One element among padding: any device can place it.
      Tie(rule, out, FactorKind::kPermutation, {&rule.results[0][d]});
    } else if (out == 1) {
      Tie(rule, in, FactorKind::kNeedReplication, {&rule.operands[0][d]});
    } else {
      Tie(rule, in, FactorKind::kPermutation, {&rule.operands[0][d], &rule.results[0][d]});
    }
  }
  return rule;
}

absl::StatusOr<ShardingRule> Concatenate(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const int64_t along = hlo::OnlyDimension(instruction);
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    const int64_t size = instruction.shape().dims[d];
    if (size == 1) continue;
    const int32_t factor =
        rule.AddFactor(size, d == along ? FactorKind::kPermutation : FactorKind::kPassThrough);
    for (size_t i = 0; i < rule.operands.size(); ++i) {
      if (instruction.operand(i)->shape().dims[d] > 1) rule.operands[i][d] = {factor};
    }
    rule.results[0][d] = {factor};
  }
  return rule;
}

absl::StatusOr<ShardingRule> Reverse(const hlo::Instruction& instruction) {
  return AllAlike(instruction, hlo::Dimensions(instruction), FactorKind::kPermutation);
}

}  // namespace tpusim::sharding::rules
