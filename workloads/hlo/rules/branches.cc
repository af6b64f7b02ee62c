#include "workloads/hlo/rules/branches.h"

#include <charconv>
#include <system_error>

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

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

std::optional<int32_t> StatedBranch(const Instruction& conditional) {
  const auto written = WrittenBranch(conditional);
  return written ? NumberOf(conditional, *written) : std::nullopt;
}

std::vector<Computation*> RunBy(const Instruction& i) {
  if (i.opcode() != Opcode::kConditional) return i.called();
  const std::optional<int32_t> stated = StatedBranch(i);
  return stated ? std::vector{i.called()[*stated]} : i.called();
}

}  // namespace tpusim::hlo
