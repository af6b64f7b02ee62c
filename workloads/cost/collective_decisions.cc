#include "workloads/cost/collective_decisions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "configs/status_macros.h"
#include "workloads/collectives/box.h"
#include "workloads/collectives/candidates.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/ragged.h"

namespace tpusim::cost {
namespace {

// The number behind `name` in the compiler's text; 0: there is none.
int NumberBehind(const std::string& text, std::string_view name) {
  const size_t at = text.find(name);
  int number = 0;
  if (at == std::string::npos) return number;
  const char* from = text.data() + at + name.size();
  std::from_chars(from, text.data() + text.size(), number);
  return number;
}

// Returns the emitter that the TPU compiler wrote down (`collective_algorithm_config`).
collectives::StatedEmitter EmitterOf(const hlo::Instruction& collective) {
  collectives::StatedEmitter stated;
  const std::string& text = collective.attrs().backend_config();
  if (text.find("\"collective_algorithm_config\"") == std::string::npos) return stated;
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return stated;
  const auto config = json.find("collective_algorithm_config");
  if (config == json.end() || !config->is_object()) return stated;
  const auto word = [&](const char* name) {
    const auto field = config->find(name);
    return field != config->end() && field->is_string() ? field->get<std::string>() : "";
  };
  stated.emitter = word("emitter");
  stated.strategy = word("strategy");
  stated.colors = NumberBehind(word("debug"), "colors:");
  // That of several arrays does the same with all of them.
  if (stated.emitter == "AllReduceScatterFusion") {
    stated.emitter = "SingleInputAllReduceScatterFusion";
  }
  return stated;
}

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
  const collectives::StatedEmitter stated = EmitterOf(i);
  if (!stated.emitter.empty()) {
    key += fmt::format("|{} {} {}", stated.emitter, stated.strategy, stated.colors);
  }
  return key + GroupsKeyOf(i);
}

bool Same(const collectives::CollectiveUse& a, const collectives::CollectiveUse& b) {
  return std::tie(a.latency, a.time, a.links, a.die, a.host, a.hbm, a.rate) ==
         std::tie(b.latency, b.time, b.links, b.die, b.host, b.hbm, b.rate);
}

// In chips, ascending; none where the group is not all of a line, plane or cube.
std::vector<int64_t> FilledExtentsOf(const configs::Topology& topology,
                                     const std::vector<int64_t>& device_of_partition,
                                     const std::vector<int64_t>& partitions) {
  std::vector<int64_t> devices;
  for (const int64_t partition : partitions) devices.push_back(device_of_partition[partition]);
  const std::optional<collectives::Box> box = collectives::FindBox(topology, devices);
  if (!box.has_value()) return {};
  std::vector<int64_t> extents;
  for (const collectives::AxisRun& run : box->runs) {
    if (run.axis >= configs::kMaxAxes) continue;
    if (run.n < topology.shape()[run.axis]) return {};
    extents.push_back(run.n);
  }
  std::sort(extents.begin(), extents.end());
  return extents;
}

}  // namespace

absl::StatusOr<const CollectiveDecisions::KeyedDecision*> CollectiveDecisions::Find(
    const hlo::Instruction& collective) {
  std::string key = hlo::IsOffLoaded(collective) ? "off-loaded " : "";
  key += KeyOf(hlo::WrappedBy(collective));
  KeyedDecision& entry = entries_[key];
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

const std::vector<int64_t>& CollectiveDecisions::FilledExtents(
    const std::vector<int64_t>& partitions) {
  const auto [found, is_new] = filled_.try_emplace(partitions);
  if (is_new) found->second = FilledExtentsOf(config_.topology, device_of_partition_, partitions);
  return found->second;
}

bool CollectiveDecisions::SameIn(CollectiveDecisions& there) const {
  if (there.device_of_partition_.size() != device_of_partition_.size()) return false;
  for (const auto& [partitions, extents] : filled_) {
    if (there.FilledExtents(partitions) != extents) return false;
  }
  for (const auto& [key, entry] : entries_) {
    if (entry.decision == nullptr) return false;  // an error names the slice
    KeyedDecision& other = there.entries_[key];
    if (other.decision == nullptr) {
      other.key = key;
      other.request = MovedTo(there, entry.request);
      auto decision = collectives::DecideCollective(there.config_, other.request, overrides_);
      if (!decision.ok()) return false;
      other.decision = *std::move(decision);
    }
    if (!Same(collectives::UseOf(*other.decision), collectives::UseOf(*entry.decision))) {
      return false;
    }
  }
  return true;
}

collectives::CollectiveRequest CollectiveDecisions::MovedTo(
    CollectiveDecisions& there, collectives::CollectiveRequest request) const {
  std::unordered_map<int64_t, int64_t> moved;  // device here -> there
  for (size_t partition = 0; partition < device_of_partition_.size(); ++partition) {
    moved.emplace(device_of_partition_[partition], there.device_of_partition_[partition]);
  }
  for (auto& [source, target] : request.pairs) {
    source = moved.at(source);
    target = moved.at(target);
  }
  if (request.forms == nullptr) return request;
  const auto& [key, here] = *std::ranges::find_if(
      placed_, [&](const auto& placed) { return placed.second.forms == request.forms; });
  PlacedGroups& placed = there.placed_[key];
  if (placed.forms == nullptr) {
    placed.groups = here.groups;
    for (std::vector<int64_t>& group : placed.groups) {
      for (int64_t& device : group) device = moved.at(device);
    }
    placed.forms = std::make_shared<const std::vector<collectives::GroupForm>>(
        collectives::FormsOf(there.config_.topology, placed.groups));
  }
  request.groups = placed.groups;
  request.forms = placed.forms;
  return request;
}

using hlo::Instruction;
using hlo::Opcode;

namespace {

void AddToKey(const google::protobuf::MessageLite& message, std::string& key) {
  key += '|';
  message.AppendToString(&key);
}

// Returns whether all arrays are in VMEM. Other collectives bring what is there through HBM.
bool IsInVmem(const Instruction& i) {
  const auto all = [](const hlo::Shape& shape) {
    const std::vector<const hlo::Shape*> leaves = hlo::Leaves(shape);
    return std::all_of(leaves.begin(), leaves.end(), [](const hlo::Shape* leaf) {
      return leaf->IsArray() && leaf->layout.memory_space == hlo::kVmemSpace;
    });
  };
  const std::vector<Instruction*>& operands = i.operands();
  return i.opcode() != Opcode::kCollectivePermute && !operands.empty() && all(i.shape()) &&
         std::all_of(operands.begin(), operands.end(),
                     [&](const Instruction* operand) { return all(operand->shape()); });
}

}  // namespace

std::string AxesOf(const Instruction& collective) {
  return hlo::annotations::kAxes.Of(collective).value_or("");
}

absl::StatusOr<collectives::CollectiveRequest> RequestOf(
    const Instruction& instruction, const std::vector<int64_t>& device_of_partition) {
  const Instruction& i = hlo::WrappedBy(instruction);
  collectives::CollectiveRequest request;
  request.name = instruction.name();
  request.axes = AxesOf(i);
  request.sparse_core = hlo::IsOffLoaded(instruction);
  request.stated = EmitterOf(i);
  if (IsInVmem(i)) request.space = isa::MemorySpace::kVmem;
  const auto devices = static_cast<int64_t>(device_of_partition.size());
  const auto device = [&](int64_t partition) -> absl::StatusOr<int64_t> {
    if (partition < 0 || partition >= devices) {
      return UserError(fmt::format("{} names partition {}, but there are only {}", i.Describe(),
                                   partition, devices));
    }
    return device_of_partition[static_cast<size_t>(partition)];
  };
  for (const Instruction* operand : i.operands()) {
    request.operand_bytes += operand->shape().ByteSize();
    // The other operands of a ragged all-to-all are the result's buffer and sizes.
    if (i.opcode() == Opcode::kRaggedAllToAll) break;
  }
  const hlo::Shape& shape = *hlo::Leaves(i.operand(0)->shape())[0];
  request.element_bytes = std::max<int64_t>(1, hlo::BitWidth(shape.element_type) / 8);
  switch (i.opcode()) {
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
      request.kind = collectives::CollectiveKind::kAllReduce;
      break;
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
      request.kind = collectives::CollectiveKind::kAllGather;
      break;
    case Opcode::kReduceScatter:
      request.kind = collectives::CollectiveKind::kReduceScatter;
      break;
    case Opcode::kAllToAll:
    case Opcode::kRaggedAllToAll:
      request.kind = collectives::CollectiveKind::kAllToAll;
      break;
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
      request.kind = collectives::CollectiveKind::kPermute;
      break;
    default:
      return NoRule(fmt::format("no rule to execute {}: '{}' is not supported", i.Describe(),
                                hlo::OpcodeName(i.opcode())));
  }
  if ((request.kind == collectives::CollectiveKind::kAllGather ||
       request.kind == collectives::CollectiveKind::kReduceScatter) &&
      i.attrs().dimensions_size() > 0) {
    request.minor_dimension =
        shape.rank() > 1 && i.attrs().dimensions(0) == hlo::MinorDimension(shape);
    if (request.minor_dimension) {
      const bool gathers = request.kind == collectives::CollectiveKind::kAllGather;
      const hlo::Shape& part = gathers ? shape : *hlo::Leaves(i.shape())[0];
      const hlo::Shape row =
          hlo::MakeShape(part.element_type, {part.dims[i.attrs().dimensions(0)]});
      request.part_row_bytes = row.ByteSize();
    }
  }
  if (request.kind == collectives::CollectiveKind::kPermute) {
    for (const auto& pair : i.attrs().source_target_pairs()) {
      ASSIGN_OR_RETURN(const int64_t source, device(pair.source()));
      ASSIGN_OR_RETURN(const int64_t target, device(pair.target()));
      request.pairs.emplace_back(source, target);
    }
    return request;
  }
  if (i.opcode() != Opcode::kRaggedAllToAll) return request;
  const Bytes row = hlo::RowBytes(i);
  const auto sizes = hlo::RaggedSizes(i);
  if (!sizes) {
    request.operand_bytes = row * hlo::RowsSent(i);
    return request;
  }
  request.operand_bytes = Bytes(0);
  for (const int64_t size : *sizes) {
    request.parts.push_back(row * size);
    request.operand_bytes += request.parts.back();
  }
  return request;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> GroupsOf(
    const Instruction& collective, const std::vector<int64_t>& device_of_partition) {
  // Partitions that exist, as ReplicaGroups says.
  ASSIGN_OR_RETURN(auto groups,
                   hlo::ReplicaGroups(hlo::WrappedBy(collective),
                                      static_cast<int64_t>(device_of_partition.size())));
  for (std::vector<int64_t>& group : groups) {
    for (int64_t& member : group) member = device_of_partition[member];
  }
  return groups;
}

std::string GroupsKeyOf(const hlo::Instruction& i) {
  const hlo::pb::HloInstructionProto& attrs = i.attrs();
  // Ids are of replicas or of all devices, which depends on the kind.
  std::string key = attrs.use_global_device_ids()
                        ? "global"
                        : fmt::format("{} {}", static_cast<int>(i.opcode()), hlo::HasChannel(i));
  for (const auto& group : attrs.replica_groups()) AddToKey(group, key);
  AddToKey(attrs.collective_device_list(), key);
  AddToKey(attrs.iota_collective_device_list(), key);
  AddToKey(attrs.mesh_axes_replica_group_list(), key);
  return key;
}

}  // namespace tpusim::cost
