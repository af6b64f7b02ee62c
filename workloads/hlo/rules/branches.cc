#include "workloads/hlo/rules/branches.h"

#include <charconv>
#include <system_error>

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/hlo/rules/scalar_value.h"

namespace tpusim::hlo {
namespace {

constexpr std::string_view kLongest = "longest";

std::optional<int32_t> NumberOf(const Instruction& conditional, std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 ||
      number >= static_cast<int64_t>(conditional.called().size())) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

bool IsBranchOf(const Instruction& conditional, std::string_view branch) {
  return branch == kLongest || NumberOf(conditional, branch).has_value();
}

bool StateBranch(Instruction* conditional, const std::string& branch) {
  if (WrittenBranch(*conditional) == branch) return false;
  annotations::kBranch.Set(conditional, branch);
  return true;
}

std::optional<std::string> WrittenBranch(const Instruction& conditional) {
  return annotations::kBranch.Of(conditional);
}

BranchChoice BranchOf(const Instruction& conditional, int64_t partition) {
  if (const auto written = WrittenBranch(conditional)) {
    return {NumberOf(conditional, *written), true};
  }
  const Instruction& selector = *conditional.operand(0);
  const std::optional<int64_t> value = ScalarValue(selector, partition);
  if (!value) return {};
  if (selector.shape().element_type == PrimitiveType::kPred) return {*value != 0 ? 0 : 1, false};
  // Out of range is the last branch.
  const auto branches = static_cast<int64_t>(conditional.called().size());
  const bool outside = *value < 0 || *value >= branches;
  return {static_cast<int32_t>(outside ? branches - 1 : *value), false};
}

std::vector<Computation*> RunBy(const Instruction& i) {
  const auto written = WrittenBranch(i);
  if (!written || i.opcode() != Opcode::kConditional) return i.called();
  const std::optional<int32_t> stated = NumberOf(i, *written);
  return stated ? std::vector{i.called()[*stated]} : i.called();
}

std::optional<LoopInTurns> TurnsOf(const Instruction& loop, int64_t trips) {
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
  const BranchChoice choice = BranchOf(*turns.conditional, 0);
  if (choice.taken || choice.stated) return std::nullopt;
  return turns;
}

}  // namespace tpusim::hlo
