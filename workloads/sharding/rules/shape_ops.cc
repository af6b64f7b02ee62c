// Ops that move elements without looking at them.
#include <numeric>

#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

absl::StatusOr<ShardingRule> Broadcast(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const auto& mapping = instruction.attrs().dimensions();  // operand dim -> result dim
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    std::vector<int32_t> unused;
    std::vector<int32_t>* from = &unused;
    for (int i = 0; i < mapping.size(); ++i) {
      if (mapping.Get(i) == d) from = &rule.operands[0][i];
    }
    Tie(rule, instruction.shape().dims[d], FactorKind::kPassThrough, {from, &rule.results[0][d]});
  }
  return rule;
}

absl::StatusOr<ShardingRule> Transpose(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const auto& permutation = instruction.attrs().dimensions();  // result dim -> operand dim
  for (int i = 0; i < permutation.size(); ++i) {
    Tie(rule, instruction.shape().dims[i], FactorKind::kPassThrough,
        {&rule.operands[0][permutation.Get(i)], &rule.results[0][i]});
  }
  return rule;
}

// Both sides number the same elements row by row, so a factor at the major end
// of what is left of both is the same loop: the greatest common divisor of the
// two dimensions at hand. Where there is none, what is left of the two
// dimensions is not shared, up to the next place where both sides begin a
// dimension.
absl::StatusOr<ShardingRule> Reshape(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<int64_t>& in = instruction.operand(0)->shape().dims;
  const std::vector<int64_t>& out = instruction.shape().dims;
  size_t i = 0, o = 0;
  int64_t in_left = 1, out_left = 1;  // of dimensions i - 1 and o - 1
  // Elements per step of what is passed; equal on both sides at a boundary.
  int64_t in_passed = 1, out_passed = 1;
  const auto next_in = [&] { in_left = in[i++]; };
  const auto next_out = [&] { out_left = out[o++]; };
  while (true) {
    while (in_left == 1 && i < in.size()) next_in();
    while (out_left == 1 && o < out.size()) next_out();
    if (in_left == 1 && out_left == 1) break;
    const int64_t common = std::gcd(in_left, out_left);
    if (common > 1 && in_passed == out_passed) {
      Tie(rule, common, FactorKind::kPassThrough,
          {&rule.operands[0][i - 1], &rule.results[0][o - 1]});
      in_left /= common, in_passed *= common;
      out_left /= common, out_passed *= common;
      continue;
    }
    // Not shared: pass whichever side is behind.
    if (out_left == 1 || (in_left != 1 && in_passed <= out_passed)) {
      Tie(rule, in_left, FactorKind::kNeedReplication, {&rule.operands[0][i - 1]});
      in_passed *= in_left, in_left = 1;
    } else {
      Tie(rule, out_left, FactorKind::kNeedReplication, {&rule.results[0][o - 1]});
      out_passed *= out_left, out_left = 1;
    }
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
