// Replica groups in all their encodings.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

// Far above any pod; keeps a damaged file from eating memory.
constexpr int64_t kMaxDevices = int64_t{1} << 24;

template <typename Range>
std::vector<int64_t> ToVector(const Range& range) {
  return {range.begin(), range.end()};
}

absl::StatusOr<Groups> Split(const std::vector<int64_t>& devices, int64_t num_groups,
                             int64_t group_size) {
  if (num_groups < 1 || group_size < 1 ||
      num_groups > static_cast<int64_t>(devices.size()) / group_size ||
      num_groups * group_size != static_cast<int64_t>(devices.size())) {
    return UserError(fmt::format("{} devices do not make {} groups of {}", devices.size(),
                                 num_groups, group_size));
  }
  Groups groups(num_groups);
  for (int64_t g = 0; g < num_groups; ++g) {
    groups[g].assign(devices.begin() + g * group_size, devices.begin() + (g + 1) * group_size);
  }
  return groups;
}

// Before a short text becomes a long list: no device comes twice.
absl::Status CheckCount(const std::vector<int64_t>& sizes, int64_t num_partitions) {
  int64_t devices = 1;
  for (int64_t size : sizes) {
    if (size < 1 || size > num_partitions / devices) {
      return UserError(
          fmt::format("device array [{}] for {} devices", fmt::join(sizes, ","), num_partitions));
    }
    devices *= size;
  }
  return absl::OkStatus();
}

absl::StatusOr<Groups> FromIota(const pb::IotaReplicaGroupListProto& proto,
                                int64_t num_partitions) {
  RETURN_IF_ERROR(CheckCount(ToVector(proto.iota_reshape_dims()), num_partitions));
  ASSIGN_OR_RETURN(
      const std::vector<int64_t> devices,
      TransposedIota(ToVector(proto.iota_reshape_dims()), ToVector(proto.iota_transpose_perm())));
  return Split(devices, proto.num_replica_groups(), proto.num_devices_per_group());
}

absl::StatusOr<std::vector<int64_t>> MeshDevices(const pb::MeshProto& mesh, int64_t size) {
  std::vector<int64_t> devices = ToVector(mesh.device_ids());
  if (devices.empty() && mesh.has_iota_transform()) {
    ASSIGN_OR_RETURN(devices, TransposedIota(ToVector(mesh.iota_transform().reshape_dims()),
                                             ToVector(mesh.iota_transform().transpose_perm())));
  } else if (devices.empty()) {
    ASSIGN_OR_RETURN(devices, TransposedIota({size}, {}));
  }
  if (static_cast<int64_t>(devices.size()) != size) {
    return UserError(fmt::format("mesh of size {} lists {} devices", size, devices.size()));
  }
  return devices;
}

// The mesh's axes are split where a sub-axis begins or ends; then every
// (sub-)axis of the groups is a run of whole factors.
absl::StatusOr<Groups> FromMeshAxes(const pb::MeshAxesReplicaGroupListProto& proto,
                                    int64_t num_partitions) {
  std::vector<int64_t> axis_sizes;
  for (const auto& axis : proto.mesh().axes()) axis_sizes.push_back(axis.size());
  RETURN_IF_ERROR(CheckCount(axis_sizes, num_partitions));
  const int num_axes = proto.mesh().axes_size();
  std::vector<std::vector<int64_t>> cuts(num_axes);  // cumulative sizes from the major side
  int64_t size = 1;
  for (int a = 0; a < num_axes; ++a) {
    const int64_t axis_size = proto.mesh().axes(a).size();
    if (axis_size < 1 || axis_size > kMaxDevices / size) return UserError("mesh axis size");
    size *= axis_size;
    cuts[a] = {1, axis_size};
  }
  struct Run {
    int64_t axis, begin, end;  // cumulative sizes
  };
  std::vector<Run> runs;
  for (const pb::AxisRefProto& ref : proto.axes()) {
    const int64_t axis = ref.mesh_axis_index();
    if (axis < 0 || axis >= num_axes) return UserError(fmt::format("mesh axis {}", axis));
    Run run{axis, 1, proto.mesh().axes(static_cast<int>(axis)).size()};
    if (ref.has_sub_axis_info()) {
      const int64_t pre = ref.sub_axis_info().pre_size();
      const int64_t sub = ref.sub_axis_info().size();
      if (pre < 1 || sub < 1 || pre > run.end || sub > run.end / pre) {
        return UserError(fmt::format("sub-axis ({}){} of an axis of {}", pre, sub, run.end));
      }
      run.begin = pre;
      run.end = pre * sub;
    }
    cuts[axis].push_back(run.begin);
    cuts[axis].push_back(run.end);
    runs.push_back(run);
  }
  // Factor dimensions of the whole mesh, and which of them each run covers.
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> factors_of_run(runs.size());
  for (int a = 0; a < num_axes; ++a) {
    std::ranges::sort(cuts[a]);
    cuts[a].erase(std::unique(cuts[a].begin(), cuts[a].end()), cuts[a].end());
    for (size_t c = 1; c < cuts[a].size(); ++c) {
      if (cuts[a][c] % cuts[a][c - 1] != 0) return UserError("sub-axes do not divide each other");
      for (size_t r = 0; r < runs.size(); ++r) {
        if (runs[r].axis == a && runs[r].begin <= cuts[a][c - 1] && cuts[a][c] <= runs[r].end) {
          factors_of_run[r].push_back(static_cast<int64_t>(dims.size()));
        }
      }
      dims.push_back(cuts[a][c] / cuts[a][c - 1]);
    }
  }
  std::vector<int64_t> grouped;
  int64_t group_size = 1;
  for (const auto& factors : factors_of_run) {
    for (int64_t f : factors) {
      if (std::ranges::find(grouped, f) != grouped.end()) {
        return UserError("an axis is grouped twice");
      }
      grouped.push_back(f);
      group_size *= dims[f];
    }
  }
  std::vector<int64_t> perm = FreeDims(static_cast<int64_t>(dims.size()), grouped, {});
  perm.insert(perm.end(), grouped.begin(), grouped.end());
  ASSIGN_OR_RETURN(const std::vector<int64_t> devices, MeshDevices(proto.mesh(), size));
  ASSIGN_OR_RETURN(std::vector<int64_t> positions, TransposedIota(dims, perm));
  for (int64_t& position : positions) position = devices[position];
  return Split(positions, size / group_size, group_size);
}

Groups FromList(const google::protobuf::RepeatedPtrField<pb::ReplicaGroup>& list) {
  Groups groups;
  for (const pb::ReplicaGroup& group : list) groups.push_back(ToVector(group.replica_ids()));
  return groups;
}

absl::StatusOr<Groups> Decode(const pb::HloInstructionProto& attrs, int64_t num_partitions) {
  if (attrs.has_iota_collective_device_list())
    return FromIota(attrs.iota_collective_device_list(), num_partitions);
  if (attrs.has_mesh_axes_replica_group_list()) {
    return FromMeshAxes(attrs.mesh_axes_replica_group_list(), num_partitions);
  }
  if (attrs.has_collective_device_list()) {
    const pb::CollectiveDeviceListProto& list = attrs.collective_device_list();
    if (list.has_iota_replica_group_list())
      return FromIota(list.iota_replica_group_list(), num_partitions);
    return FromList(list.replica_groups());
  }
  return FromList(attrs.replica_groups());
}

void ClearGroups(pb::HloInstructionProto& attrs) {
  attrs.clear_replica_groups();
  attrs.clear_collective_device_list();
  attrs.clear_iota_collective_device_list();
  attrs.clear_mesh_axes_replica_group_list();
}

bool IdsAreReplicasOfAllPartitions(const Instruction& collective) {
  if (collective.attrs().use_global_device_ids() || !HasChannel(collective)) return false;
  return CombinesAcrossDevices(collective.opcode()) || collective.opcode() == Opcode::kAllGather ||
         collective.opcode() == Opcode::kAllGatherStart;
}

absl::StatusOr<Groups> Expand(const Instruction& collective, int64_t num_partitions) {
  if (num_partitions < 1 || num_partitions > kMaxDevices) {
    return UserError(fmt::format("{} partitions", num_partitions));
  }
  ASSIGN_OR_RETURN(Groups groups, Decode(collective.attrs(), num_partitions));
  if (groups.size() == 1 && groups[0].empty()) groups.clear();
  const bool only_replica_0 = groups.size() == 1 && groups[0] == std::vector<int64_t>{0};
  const bool all_partitions = IdsAreReplicasOfAllPartitions(collective);
  if (all_partitions && !groups.empty() && !only_replica_0) {
    return UserError("replica ids beyond 0: modules with several replicas are not supported");
  }
  if (groups.empty() || (all_partitions && only_replica_0)) {
    ASSIGN_OR_RETURN(std::vector<int64_t> everybody, TransposedIota({num_partitions}, {}));
    return Groups{std::move(everybody)};
  }
  if (only_replica_0 && !HasChannel(collective)) {
    // Replica 0 by itself, in each partition.
    Groups alone(num_partitions);
    for (int64_t p = 0; p < num_partitions; ++p) alone[p] = {p};
    return alone;
  }
  std::vector<bool> seen(static_cast<size_t>(num_partitions));
  for (const auto& group : groups) {
    if (group.empty()) return UserError("an empty group beside others");
    for (int64_t id : group) {
      if (id < 0 || id >= num_partitions) {
        return UserError(fmt::format("device {} of {}", id, num_partitions));
      }
      if (seen[id]) return UserError(fmt::format("device {} twice", id));
      seen[id] = true;
    }
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end()) {
    return UserError(fmt::format(
        "device {} of {} is in no group; every device must be in exactly one, unless there are no "
        "groups (one of all devices)",
        missing - seen.begin(), num_partitions));
  }
  return groups;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> TransposedIota(const std::vector<int64_t>& dims,
                                                    const std::vector<int64_t>& perm_or_empty) {
  int64_t size = 1;
  for (int64_t dim : dims) {
    if (dim < 1 || dim > kMaxDevices / size) {
      return UserError(fmt::format("device array [{}]", fmt::join(dims, ",")));
    }
    size *= dim;
  }
  const int64_t rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> perm = perm_or_empty;
  if (perm.empty()) {
    for (int64_t d = 0; d < rank; ++d) perm.push_back(d);
  }
  std::vector<int64_t> sorted = perm;
  std::ranges::sort(sorted);
  for (int64_t d = 0; d < static_cast<int64_t>(sorted.size()); ++d) {
    if (sorted[d] != d || static_cast<int64_t>(sorted.size()) != rank) {
      return UserError(
          fmt::format("({}) is no permutation of {} dimensions", fmt::join(perm, ","), rank));
    }
  }
  std::vector<int64_t> strides(rank, 1);  // of the untransposed array
  for (int64_t d = rank - 2; d >= 0; --d) strides[d] = strides[d + 1] * dims[d + 1];
  std::vector<int64_t> result(size);
  std::vector<int64_t> index(rank, 0);  // in the transposed array
  int64_t value = 0;
  for (int64_t i = 0; i < size; ++i) {
    result[i] = value;
    for (int64_t d = rank - 1; d >= 0; --d) {
      value += strides[perm[d]];
      if (++index[d] < dims[perm[d]]) break;
      value -= index[d] * strides[perm[d]];
      index[d] = 0;
    }
  }
  return result;
}

absl::StatusOr<Groups> ReplicaGroups(const Instruction& collective, int64_t num_partitions) {
  absl::StatusOr<Groups> groups = Expand(collective, num_partitions);
  if (groups.ok()) return groups;
  return absl::Status(
      groups.status().code(),
      fmt::format("replica groups of {}: {}", collective.Describe(), Message(groups.status())));
}

void SetReplicaGroups(Instruction* collective, const Groups& groups) {
  ClearGroups(collective->mutable_attrs());
  pb::CollectiveDeviceListProto* list =
      collective->mutable_attrs().mutable_collective_device_list();
  for (const auto& group : groups) {
    list->add_replica_groups()->mutable_replica_ids()->Add(group.begin(), group.end());
  }
}

void SetIotaReplicaGroups(Instruction* collective, const IotaGroups& groups) {
  ClearGroups(collective->mutable_attrs());
  pb::IotaReplicaGroupListProto* list =
      collective->mutable_attrs().mutable_iota_collective_device_list();
  list->set_num_replica_groups(groups.groups);
  list->set_num_devices_per_group(groups.group_size);
  list->mutable_iota_reshape_dims()->Add(groups.reshape_dims.begin(), groups.reshape_dims.end());
  list->mutable_iota_transpose_perm()->Add(groups.transpose_perm.begin(),
                                           groups.transpose_perm.end());
}

}  // namespace tpusim::hlo
