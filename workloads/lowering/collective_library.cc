#include "workloads/lowering/collective_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "configs/status_macros.h"
#include "workloads/collectives/candidates.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/lowering/instruction_class.h"
#include "workloads/lowering/transfers.h"
#include "workloads/passes/collectives/async_collectives.h"

namespace tpusim::lowering {
namespace {

void Append(const google::protobuf::MessageLite& message, std::string& key) {
  key += '|';
  message.AppendToString(&key);
}

// Equal for collectives with the same groups.
std::string GroupsKeyOf(const hlo::Instruction& i) {
  const hlo::pb::HloInstructionProto& attrs = i.attrs();
  // Ids are of replicas or of all devices, which depends on the kind.
  std::string key = attrs.use_global_device_ids()
                        ? "global"
                        : fmt::format("{} {}", static_cast<int>(i.opcode()), hlo::HasChannel(i));
  for (const auto& group : attrs.replica_groups()) Append(group, key);
  Append(attrs.collective_device_list(), key);
  Append(attrs.iota_collective_device_list(), key);
  Append(attrs.mesh_axes_replica_group_list(), key);
  return key;
}

// Equal for collectives that differ in name and place only.
std::string KeyOf(const hlo::Instruction& i) {
  const hlo::pb::HloInstructionProto& attrs = i.attrs();
  std::string key = fmt::format("{} ", static_cast<int>(i.opcode()));
  for (const hlo::Instruction* operand : i.operands()) key += operand->shape().ToString() + " ";
  for (const auto& pair : attrs.source_target_pairs()) Append(pair, key);
  for (const int64_t dimension : attrs.dimensions()) key += fmt::format(",{}", dimension);
  if (const auto sizes = hlo::RaggedSizes(i)) key += fmt::format("|{}", fmt::join(*sizes, ","));
  return key + GroupsKeyOf(i);
}

isa::SharedBody WithFlagsMoved(const isa::SharedBody& body, int32_t by) {
  isa::Body moved = *body;
  for (isa::Instruction& instruction : moved) {
    if (auto* rdma = std::get_if<isa::Rdma>(&instruction.kind)) {
      if (rdma->arrival_flag >= 0) rdma->arrival_flag += by;
      if (rdma->sent_flag >= 0) rdma->sent_flag += by;
    } else if (auto* wait = std::get_if<isa::Wait>(&instruction.kind)) {
      wait->flag += by;
    } else if (auto* signal = std::get_if<isa::Signal>(&instruction.kind)) {
      signal->flag += by;
    } else if (auto* loop = std::get_if<isa::Loop>(&instruction.kind)) {
      loop->body = WithFlagsMoved(loop->body, by);
    }
  }
  return std::make_shared<const isa::Body>(std::move(moved));
}

}  // namespace

absl::StatusOr<CollectiveLibrary::Entry*> CollectiveLibrary::Find(
    const hlo::Instruction& collective) {
  const char* who = passes::IsOffLoaded(collective) ? "off-loaded " : "";
  const auto [it, fresh] = entries_.try_emplace(who + KeyOf(WrappedBy(collective)));
  Entry& entry = it->second;
  // An entry without a decision is one that failed before: it fails again, named anew.
  if (entry.decision == nullptr) {
    ASSIGN_OR_RETURN(entry.request, RequestOf(collective, device_of_partition_));
    if (entry.request.kind != collectives::CollectiveKind::kPermute) {
      ASSIGN_OR_RETURN(const PlacedGroups* placed, Place(collective));
      entry.request.groups = placed->groups;
      entry.request.forms = placed->forms;
    }
    ASSIGN_OR_RETURN(entry.decision,
                     collectives::DecideCollective(config_, entry.request, wishes_));
  }
  return &entry;
}

absl::StatusOr<const CollectiveLibrary::PlacedGroups*> CollectiveLibrary::Place(
    const hlo::Instruction& collective) {
  PlacedGroups& placed = placed_[GroupsKeyOf(WrappedBy(collective))];
  if (placed.forms == nullptr) {
    ASSIGN_OR_RETURN(placed.groups, GroupsOf(collective, device_of_partition_));
    placed.forms = std::make_shared<const std::vector<collectives::GroupForm>>(
        collectives::FormsOf(config_.topology, placed.groups));
  }
  return &placed;
}

absl::StatusOr<collectives::CollectiveUse> CollectiveLibrary::Estimate(
    const hlo::Instruction& collective) {
  ASSIGN_OR_RETURN(const Entry* entry, Find(collective));
  return collectives::UseOf(*entry->decision);
}

std::vector<std::string> CollectiveLibrary::Assumptions() const {
  std::vector<std::string> all;
  for (const auto& [key, entry] : entries_) {
    if (!entry.lowered) continue;
    for (const std::string& sentence : collectives::AssumptionsOf(*entry.decision)) {
      if (std::find(all.begin(), all.end(), sentence) == all.end()) all.push_back(sentence);
    }
  }
  return all;
}

absl::StatusOr<collectives::LoweredCollective> CollectiveLibrary::Lower(
    const hlo::Instruction& collective, isa::PodProgram& program) {
  ASSIGN_OR_RETURN(Entry * entry, Find(collective));
  collectives::LoweredCollective result;
  if (!entry->lowered) {
    entry->first_flag = program.flags;
    entry->lowered =
        collectives::LowerCollective(config_, entry->request, *entry->decision, program);
    entry->flags = program.flags - entry->first_flag;
    result = *entry->lowered;
  } else {
    result = *entry->lowered;
    const int32_t by = program.flags - entry->first_flag;
    program.flags += entry->flags;
    for (isa::SharedBody& body : result.bodies) body = WithFlagsMoved(body, by);
  }
  result.info.axes = AxesOf(WrappedBy(collective));
  return result;
}

}  // namespace tpusim::lowering
