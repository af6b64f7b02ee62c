#include "workloads/lowering/branches.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/lowering/scalar_value.h"

namespace tpusim::lowering {

using hlo::Instruction;

absl::StatusOr<BranchChoice> ChooseBranch(const Instruction& conditional, int64_t partition,
                                          const BranchOverrides& overrides) {
  const auto branches = static_cast<int64_t>(conditional.called().size());
  for (const auto& [pattern, choice] : overrides) {
    if (fnmatch(pattern.c_str(), conditional.name().c_str(), 0) != 0) continue;
    if (choice == "longest") return BranchChoice{std::nullopt, true};
    const bool digits = !choice.empty() && choice.size() < 9 &&
                        std::all_of(choice.begin(), choice.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
    const int64_t index = digits ? std::stoll(choice) : -1;
    if (index < 0 || index >= branches) {
      return UserError(
          fmt::format("--branch {}={}: {} has branches 0 to {}; give one of them or "
                      "'longest'",
                      pattern, choice, conditional.Describe(), branches - 1));
    }
    return BranchChoice{static_cast<int32_t>(index), true};
  }
  const Instruction& selector = *conditional.operand(0);
  const std::optional<int64_t> value = ScalarValue(selector, partition);
  if (!value) return BranchChoice{};
  if (selector.shape().element_type == hlo::PrimitiveType::kPred) {
    return BranchChoice{*value != 0 ? 0 : 1, false};
  }
  // Out of range is the last branch.
  const bool outside = *value < 0 || *value >= branches;
  return BranchChoice{static_cast<int32_t>(outside ? branches - 1 : *value), false};
}

absl::StatusOr<std::optional<LoopInTurns>> TurnsOf(const hlo::Instruction& loop, int64_t trips,
                                                   const BranchOverrides& overrides) {
  const auto assumed = hlo::AssumedTripsOf(loop);
  if (!assumed || assumed->of_branches.empty() || assumed->count != trips || trips == 0) {
    return std::nullopt;
  }
  LoopInTurns turns{nullptr, trips, assumed->of_branches};
  for (const hlo::Instruction* i : loop.called()[0]->instructions()) {
    if (i->opcode() != hlo::Opcode::kConditional) continue;
    if (turns.conditional != nullptr || i->called().size() != turns.of_branches.size()) {
      return std::nullopt;
    }
    turns.conditional = i;
  }
  if (turns.conditional == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const BranchChoice choice, ChooseBranch(*turns.conditional, 0, overrides));
  if (choice.taken || choice.overridden) return std::nullopt;
  return turns;
}

}  // namespace tpusim::lowering
