#include "workloads/cost/collective_decisions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/status_macros.h"
#include "workloads/collectives/candidates.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ragged.h"

namespace tpusim::cost {
namespace {

// Equal for collectives that differ in name and place only.
std::string KeyOf(const hlo::Instruction& i) {
  const hlo::pb::HloInstructionProto& attrs = i.attrs();
  std::string key = fmt::format("{} ", static_cast<int>(i.opcode()));
  key += i.shape().ToString(true) + " ";  // memory spaces and layouts count
  for (const hlo::Instruction* operand : i.operands()) {
    key += operand->shape().ToString(true) + " ";
  }
  for (const auto& pair : attrs.source_target_pairs()) {
    key += fmt::format("|{}>{}", pair.source(), pair.target());
  }
  for (const int64_t dimension : attrs.dimensions()) key += fmt::format(",{}", dimension);
  if (const auto sizes = hlo::RaggedSizes(i)) key += fmt::format("|{}", fmt::join(*sizes, ","));
  return key + GroupsKeyOf(i);
}

}  // namespace

absl::StatusOr<const CollectiveDecisions::Entry*> CollectiveDecisions::Find(
    const hlo::Instruction& collective) {
  std::string key = hlo::IsOffLoaded(collective) ? "off-loaded " : "";
  key += KeyOf(hlo::WrappedBy(collective));
  Entry& entry = entries_[key];
  // An entry without a decision is one that failed before: it fails again, named anew.
  if (entry.decision == nullptr) {
    entry.key = std::move(key);
    ASSIGN_OR_RETURN(entry.request, RequestOf(collective, device_of_partition_));
    if (entry.request.kind != collectives::CollectiveKind::kPermute) {
      ASSIGN_OR_RETURN(const PlacedGroups* placed, Place(collective));
      entry.request.groups = placed->groups;
      entry.request.forms = placed->forms;
    }
    ASSIGN_OR_RETURN(entry.decision,
                     collectives::DecideCollective(config_, entry.request, overrides_));
  }
  return &entry;
}

absl::StatusOr<const CollectiveDecisions::PlacedGroups*> CollectiveDecisions::Place(
    const hlo::Instruction& collective) {
  PlacedGroups& placed = placed_[GroupsKeyOf(hlo::WrappedBy(collective))];
  if (placed.forms == nullptr) {
    ASSIGN_OR_RETURN(placed.groups, GroupsOf(collective, device_of_partition_));
    placed.forms = std::make_shared<const std::vector<collectives::GroupForm>>(
        collectives::FormsOf(config_.topology, placed.groups));
  }
  return &placed;
}

}  // namespace tpusim::cost
