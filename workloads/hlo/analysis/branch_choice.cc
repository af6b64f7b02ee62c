#include "workloads/hlo/analysis/branch_choice.h"

#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/hlo/rules/branches.h"

namespace tpusim::hlo {

BranchChoice BranchOf(const Instruction& conditional, int64_t partition,
                      const KnownValues& values) {
  if (WrittenBranch(conditional)) return {StatedBranch(conditional), true};
  const Instruction& selector = *conditional.operand(0);
  const std::optional<int64_t> value = values.ScalarOf(selector, partition);
  if (!value) return {};
  if (selector.shape().element_type == PrimitiveType::kPred) return {*value != 0 ? 0 : 1, false};
  // XLA takes the last branch for a number out of range.
  const auto branches = std::ssize(conditional.called());
  const bool outside = *value < 0 || *value >= branches;
  return {static_cast<int32_t>(outside ? branches - 1 : *value), false};
}

std::optional<LoopInTurns> TurnsOf(const Instruction& loop, int64_t trips,
                                   const KnownValues& values) {
  const auto assumed = AssumedTripsOf(loop);
  if (!assumed || assumed->of_branches.empty() || assumed->count != trips || trips == 0) {
    return std::nullopt;
  }
  LoopInTurns turns{nullptr, trips, assumed->of_branches};
  for (const Instruction* i : loop.called()[0]->instructions()) {
    if (i->opcode() != Opcode::kConditional) continue;
    if (turns.conditional != nullptr || i->called().size() != turns.of_branches.size()) {
      return std::nullopt;
    }
    turns.conditional = i;
  }
  if (turns.conditional == nullptr) return std::nullopt;
  const BranchChoice choice = BranchOf(*turns.conditional, 0, values);
  if (choice.taken || choice.stated) return std::nullopt;
  return turns;
}

}  // namespace tpusim::hlo
