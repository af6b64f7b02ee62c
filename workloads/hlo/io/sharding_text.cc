#include "workloads/hlo/io/sharding_text.h"

#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace tpusim::hlo {
namespace {

template <typename Dims, typename Perm>
std::string ReshapedText(const Dims& reshape, const Perm& perm) {
  std::string text = fmt::format("[{}]", fmt::join(reshape, ","));
  // One dimension has nothing to transpose.
  if (perm.size() > 1) text += fmt::format("T({})", fmt::join(perm, ","));
  return text;
}

template <typename Dims, typename Perm>
std::string IotaText(const Dims& reshape, const Perm& perm) {
  return "<=" + ReshapedText(reshape, perm);
}

std::string MeshText(const pb::MeshProto& mesh) {
  std::vector<std::string> axes;
  for (const auto& axis : mesh.axes())
    axes.push_back(fmt::format("'{}'={}", axis.name(), axis.size()));
  std::string text = fmt::format("mesh[{}]", fmt::join(axes, ","));
  if (mesh.device_ids_size() > 0) {
    text += fmt::format(", device_ids=({})", fmt::join(mesh.device_ids(), ","));
  } else if (mesh.has_iota_transform()) {
    text += fmt::format(", device_ids=({})", ReshapedText(mesh.iota_transform().reshape_dims(),
                                                          mesh.iota_transform().transpose_perm()));
  }
  return text;
}

template <typename Axes>
std::vector<std::string> AxisTexts(const Axes& axes, const pb::MeshProto& mesh) {
  std::vector<std::string> texts;
  for (const pb::AxisRefProto& axis : axes) {
    const int64_t index = axis.mesh_axis_index();
    std::string text = index >= 0 && index < mesh.axes_size()
                           ? fmt::format("'{}'", mesh.axes(static_cast<int>(index)).name())
                           : fmt::format("?{}", index);
    if (axis.has_sub_axis_info()) {
      text += fmt::format(":({}){}", axis.sub_axis_info().pre_size(), axis.sub_axis_info().size());
    }
    texts.push_back(text);
  }
  return texts;
}

std::string NamedText(const pb::NamedShardingProto& named) {
  if (named.tuple_shardings_size() > 0) {
    std::vector<std::string> parts;
    for (const auto& leaf : named.tuple_shardings()) parts.push_back(NamedText(leaf));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  std::vector<std::string> dims;
  for (const auto& dim : named.dim_shardings()) {
    std::vector<std::string> axes = AxisTexts(dim.axes(), named.mesh());
    if (!dim.is_closed()) axes.push_back("?");
    dims.push_back(fmt::format("{{{}}}", fmt::join(axes, ", ")));
  }
  std::string text = fmt::format("{{{}, [{}]", MeshText(named.mesh()), fmt::join(dims, ", "));
  const auto add = [&](std::string_view name, const auto& axes) {
    if (axes.empty()) return;
    text += fmt::format(", {}={{{}}}", name, fmt::join(AxisTexts(axes, named.mesh()), ", "));
  };
  add("replicated", named.replicated_axes());
  add("unreduced", named.unreduced_axes());
  add("manual", named.manual_axes());
  return text + "}";
}

// " shard_as 3": shardings of one group are to be alike.
std::string GroupText(const pb::OpSharding& sharding) {
  if (!sharding.is_shard_group()) return "";
  const bool like = sharding.shard_group_type() == pb::OpSharding::LIKE;
  return fmt::format(" {} {}", like ? kShardLike : kShardAs, sharding.shard_group_id());
}

std::string TypeText(int type) {
  for (const auto& [name, known] : kShardingTypes) {
    if (type == known) return std::string(name);
  }
  return fmt::format("type {}", type);
}

}  // namespace

std::string ShardingText(const pb::OpSharding& sharding) {
  if (sharding.has_named_sharding()) return NamedText(sharding.named_sharding());
  if (sharding.type() == pb::OpSharding::TUPLE) {
    std::vector<std::string> parts;
    for (const auto& leaf : sharding.tuple_shardings()) parts.push_back(ShardingText(leaf));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  if (sharding.type() == pb::OpSharding::MAXIMAL) {
    return fmt::format("{{maximal device={}{}}}", fmt::join(sharding.tile_assignment_devices(), ","),
                       GroupText(sharding));
  }
  if (sharding.type() != pb::OpSharding::OTHER) {
    return fmt::format("{{{}{}}}", TypeText(sharding.type()), GroupText(sharding));
  }
  std::string text =
      fmt::format("{{devices=[{}]", fmt::join(sharding.tile_assignment_dimensions(), ","));
  if (sharding.iota_reshape_dims_size() > 0) {
    text += IotaText(sharding.iota_reshape_dims(), sharding.iota_transpose_perm());
  } else {
    text += fmt::format("{}", fmt::join(sharding.tile_assignment_devices(), ","));
  }
  if (sharding.replicate_on_last_tile_dim()) text += " last_tile_dim_replicate";
  if (sharding.last_tile_dims_size() > 0) {
    std::vector<std::string> types;
    for (int type : sharding.last_tile_dims()) types.push_back(TypeText(type));
    text += fmt::format(" last_tile_dims={{{}}}", fmt::join(types, ", "));
  }
  return text + GroupText(sharding) + "}";
}

std::string ReplicaGroupsText(const pb::HloInstructionProto& attrs) {
  const auto iota = [](const pb::IotaReplicaGroupListProto& list) {
    return fmt::format("[{},{}]{}", list.num_replica_groups(), list.num_devices_per_group(),
                       IotaText(list.iota_reshape_dims(), list.iota_transpose_perm()));
  };
  if (attrs.has_iota_collective_device_list()) return iota(attrs.iota_collective_device_list());
  if (attrs.has_mesh_axes_replica_group_list()) {
    const auto& list = attrs.mesh_axes_replica_group_list();
    return fmt::format("{} {{{}}}", MeshText(list.mesh()),
                       fmt::join(AxisTexts(list.axes(), list.mesh()), ","));
  }
  const auto& device_list = attrs.collective_device_list();
  if (device_list.has_iota_replica_group_list()) return iota(device_list.iota_replica_group_list());
  std::vector<std::string> groups;
  for (const auto& group :
       attrs.has_collective_device_list() ? device_list.replica_groups() : attrs.replica_groups()) {
    groups.push_back(fmt::format("{{{}}}", fmt::join(group.replica_ids(), ",")));
  }
  return groups.empty() ? "" : fmt::format("{{{}}}", fmt::join(groups, ","));
}

}  // namespace tpusim::hlo
