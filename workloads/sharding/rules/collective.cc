// Collectives that the program itself contains, over axes that its manual regions
// own: along the other axes they move shards as they are.
#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

// The dimension that is gathered, scattered or exchanged must be whole: its blocks
// are counted in the shapes that the program wrote.
absl::StatusOr<ShardingRule> Collective(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  std::vector<int64_t> moved;
  if (instruction.opcode() == hlo::Opcode::kAllGather ||
      instruction.opcode() == hlo::Opcode::kReduceScatter ||
      instruction.opcode() == hlo::Opcode::kAllToAll) {
    moved = hlo::Dimensions(instruction);
  }
  const std::vector<const hlo::Shape*> leaves = hlo::Leaves(instruction.shape());
  // A tuple all-to-all takes and gives one block per member.
  const bool blocks = instruction.opcode() == hlo::Opcode::kAllToAll && moved.empty();
  for (size_t i = 0; i < rule.operands.size() && i < leaves.size(); ++i) {
    const std::vector<int64_t>& from = instruction.operand(i)->shape().dims;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t to = leaves[i]->dims[d];
      const bool whole = std::ranges::find(moved, d) != moved.end();
      if (!whole && !blocks) {
        Tie(rule, from[d], FactorKind::kPassThrough, {&rule.operands[i][d], &rule.results[i][d]});
        continue;
      }
      Tie(rule, from[d], FactorKind::kNeedReplication, {&rule.operands[i][d]});
      Tie(rule, to, FactorKind::kNeedReplication, {&rule.results[i][d]});
    }
  }
  return rule;
}

// Rows go to places that are data; what a row consists of passes.
absl::StatusOr<ShardingRule> RaggedAllToAll(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const std::vector<int64_t>& in = instruction.operand(0)->shape().dims;
  const std::vector<int64_t>& out = instruction.shape().dims;
  for (size_t d = 1; d < out.size(); ++d) {
    Tie(rule, out[d], FactorKind::kPassThrough,
        {&rule.operands[0][d], &rule.operands[1][d], &rule.results[0][d]});
  }
  Tie(rule, in[0], FactorKind::kNeedReplication, {&rule.operands[0][0]});
  Tie(rule, out[0], FactorKind::kNeedReplication, {&rule.operands[1][0], &rule.results[0][0]});
  TieRest(rule, instruction);
  return rule;
}

}  // namespace tpusim::sharding::rules
