// Shardings and replica groups in HLO text; sharding_text.h writes them.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/io/sharding_text.h"
#include "workloads/hlo/io/text_values.h"

namespace tpusim::hlo {
namespace {

constexpr int kMostNestedShardings = 64;

// [2,4]T(1,0): numbers from 0, reshaped and transposed.
template <typename Dims, typename Perm>
absl::Status ParseReshaped(TextCursor& text, Dims* reshape, Perm* perm) {
  RETURN_IF_ERROR(text.Expect("["));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, text.IntsUntil("]"));
  reshape->Add(dims.begin(), dims.end());
  if (!text.Take("T")) {
    if (dims.size() == 1) perm->Add(0);  // as it is written; else none is the identity
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(text.Expect("("));
  ASSIGN_OR_RETURN(const std::vector<int64_t> order, text.IntsUntil(")"));
  for (const int64_t d : order) perm->Add(static_cast<int>(d));
  return absl::OkStatus();
}

// <=[2,4]T(1,0), after the extents of what it fills.
template <typename Dims, typename Perm>
absl::Status ParseIota(TextCursor& text, Dims* reshape, Perm* perm) {
  RETURN_IF_ERROR(text.Expect("<="));
  return ParseReshaped(text, reshape, perm);
}

// 'x'
absl::StatusOr<std::string> ParseAxisName(TextCursor& text) {
  RETURN_IF_ERROR(text.Expect("'"));
  const std::string name(text.Word());
  RETURN_IF_ERROR(text.Expect("'"));
  return name;
}

// mesh['x'=2,'y'=4], device_ids=([2,4]T(1,0)) or device_ids=(1,0,...)
absl::Status ParseMesh(TextCursor& text, pb::MeshProto& mesh) {
  RETURN_IF_ERROR(text.Expect("mesh["));
  while (!text.Take("]")) {
    ASSIGN_OR_RETURN(const std::string name, ParseAxisName(text));
    RETURN_IF_ERROR(text.Expect("="));
    ASSIGN_OR_RETURN(const int64_t size, text.Integer());
    auto* axis = mesh.add_axes();
    axis->set_name(name);
    axis->set_size(size);
    text.Take(",");
  }
  const size_t before = text.at();
  if (!text.Take(",") || !text.Take("device_ids=(")) {
    text.set_at(before);
    return absl::OkStatus();
  }
  if (text.Peek() == '[') {
    auto* iota = mesh.mutable_iota_transform();
    RETURN_IF_ERROR(
        ParseReshaped(text, iota->mutable_reshape_dims(), iota->mutable_transpose_perm()));
    return text.Expect(")");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids, text.IntsUntil(")"));
  mesh.mutable_device_ids()->Add(ids.begin(), ids.end());
  return absl::OkStatus();
}

// 'x', 'y':(2)4 up to }; `open` hears of a ? among them.
template <typename Axes>
absl::Status ParseAxes(TextCursor& text, const pb::MeshProto& mesh, Axes* axes, bool* open) {
  RETURN_IF_ERROR(text.Expect("{"));
  while (!text.Take("}")) {
    const size_t begin = text.Begin();
    if (text.Take("?")) {
      if (text.Peek() >= '0' && text.Peek() <= '9') {  // an axis that the mesh lacks
        ASSIGN_OR_RETURN(const int64_t index, text.Integer());
        axes->Add()->set_mesh_axis_index(index);
      } else if (open == nullptr) {
        return text.ErrorAt(begin, "an open list of axes");
      } else {
        *open = true;
      }
    } else {
      ASSIGN_OR_RETURN(const std::string name, ParseAxisName(text));
      int index = 0;
      while (index < mesh.axes_size() && mesh.axes(index).name() != name) ++index;
      if (index == mesh.axes_size()) return text.ErrorAt(begin, "the mesh has no such axis");
      pb::AxisRefProto* axis = axes->Add();
      axis->set_mesh_axis_index(index);
      if (text.Take(":(")) {
        ASSIGN_OR_RETURN(const int64_t pre_size, text.Integer());
        RETURN_IF_ERROR(text.Expect(")"));
        ASSIGN_OR_RETURN(const int64_t size, text.Integer());
        axis->mutable_sub_axis_info()->set_pre_size(pre_size);
        axis->mutable_sub_axis_info()->set_size(size);
      }
    }
    text.Take(",");
  }
  return absl::OkStatus();
}

// mesh[...], [{'x'}, {}], replicated={'y'}} after the opening bracket; mesh[...] replicated} splits
// nothing.
absl::Status ParseNamed(TextCursor& text, pb::NamedShardingProto& named) {
  RETURN_IF_ERROR(ParseMesh(text, *named.mutable_mesh()));
  text.Take(",");
  if (text.Take("replicated}")) return absl::OkStatus();
  RETURN_IF_ERROR(text.Expect("["));
  while (!text.Take("]")) {
    auto* dim = named.add_dim_shardings();
    bool open = false;
    RETURN_IF_ERROR(ParseAxes(text, named.mesh(), dim->mutable_axes(), &open));
    dim->set_is_closed(!open);
    text.Take(",");
  }
  while (text.Take(",")) {
    const size_t begin = text.Begin();
    const std::string_view kind = text.Word();
    RETURN_IF_ERROR(text.Expect("="));
    if (kind == "metadata") {
      RETURN_IF_ERROR(text.Balanced().status());
      continue;
    }
    auto* axes = kind == "replicated"  ? named.mutable_replicated_axes()
                 : kind == "unreduced" ? named.mutable_unreduced_axes()
                 : kind == "manual"    ? named.mutable_manual_axes()
                                       : nullptr;
    if (axes == nullptr) return text.ErrorAt(begin, "no part of a sharding is called so");
    RETURN_IF_ERROR(ParseAxes(text, named.mesh(), axes, nullptr));
  }
  return text.Expect("}");
}

absl::StatusOr<pb::OpSharding::Type> TypeOf(TextCursor& text) {
  const size_t begin = text.Begin();
  const std::string_view word = text.Word();
  for (const auto& [name, type] : kShardingTypes) {
    if (word == name) return type;
  }
  return text.ErrorAt(begin, "no kind of sharding is called so");
}

absl::Status ParseTiles(TextCursor& text, pb::OpSharding& sharding) {
  sharding.set_type(pb::OpSharding::OTHER);
  RETURN_IF_ERROR(text.Expect("["));
  ASSIGN_OR_RETURN(const std::vector<int64_t> tiles, text.IntsUntil("]"));
  sharding.mutable_tile_assignment_dimensions()->Add(tiles.begin(), tiles.end());
  if (text.Peek() == '<') {
    RETURN_IF_ERROR(ParseIota(text, sharding.mutable_iota_reshape_dims(),
                              sharding.mutable_iota_transpose_perm()));
  } else if (text.Peek() >= '0' && text.Peek() <= '9') {
    do {
      ASSIGN_OR_RETURN(const int64_t device, text.Integer());
      sharding.add_tile_assignment_devices(device);
    } while (text.Take(","));
  }
  if (text.Take("last_tile_dim_replicate")) sharding.set_replicate_on_last_tile_dim(true);
  if (text.Take("last_tile_dims={")) {
    while (!text.Take("}")) {
      ASSIGN_OR_RETURN(const pb::OpSharding::Type type, TypeOf(text));
      sharding.add_last_tile_dims(type);
      text.Take(",");
    }
  }
  return absl::OkStatus();
}

// shard_as 3 or shard_like 3: the group of shardings that are to be alike.
absl::Status ParseGroup(TextCursor& text, pb::OpSharding& sharding) {
  const bool like = text.Take(kShardLike);
  if (!like && !text.Take(kShardAs)) return absl::OkStatus();
  sharding.set_is_shard_group(true);
  sharding.set_shard_group_type(like ? pb::OpSharding::LIKE : pb::OpSharding::AS);
  ASSIGN_OR_RETURN(const int64_t group, text.Integer());
  sharding.set_shard_group_id(group);
  return absl::OkStatus();
}

// metadata={op_name="a"}, or a list of such: who stated it, which nothing asks for.
absl::Status SkipMetadata(TextCursor& text) {
  if (!text.Take("metadata=")) return absl::OkStatus();
  return text.Balanced().status();
}

absl::Status ParseOne(TextCursor& text, int depth, pb::OpSharding& sharding) {
  if (depth > kMostNestedShardings) return text.Error("shardings nested too deep");
  RETURN_IF_ERROR(text.Expect("{"));
  if (text.Peek() == '{' || text.Peek() == '}') {
    sharding.set_type(pb::OpSharding::TUPLE);
    while (!text.Take("}")) {
      RETURN_IF_ERROR(ParseOne(text, depth + 1, *sharding.add_tuple_shardings()));
      text.Take(",");
    }
    return absl::OkStatus();
  }
  if (text.Peek() == 'm') {
    const size_t begin = text.at();
    if (text.Take("mesh[")) {
      text.set_at(begin);
      return ParseNamed(text, *sharding.mutable_named_sharding());
    }
  }
  if (text.Take("devices=")) {
    RETURN_IF_ERROR(ParseTiles(text, sharding));
  } else {
    ASSIGN_OR_RETURN(const pb::OpSharding::Type type, TypeOf(text));
    sharding.set_type(type);
    if (text.Take("device=")) {
      ASSIGN_OR_RETURN(const int64_t device, text.Integer());
      sharding.add_tile_assignment_devices(device);
    }
  }
  RETURN_IF_ERROR(ParseGroup(text, sharding));
  RETURN_IF_ERROR(SkipMetadata(text));
  return text.Expect("}");
}

// Shardings of tuples whose leaves are named are one message again.
void JoinNamed(pb::OpSharding& sharding) {
  if (sharding.type() != pb::OpSharding::TUPLE || sharding.tuple_shardings_size() == 0) return;
  for (pb::OpSharding& leaf : *sharding.mutable_tuple_shardings()) {
    JoinNamed(leaf);
    if (!leaf.has_named_sharding()) return;
  }
  pb::NamedShardingProto named;
  for (const pb::OpSharding& leaf : sharding.tuple_shardings()) {
    *named.add_tuple_shardings() = leaf.named_sharding();
  }
  sharding.Clear();
  *sharding.mutable_named_sharding() = std::move(named);
}

}  // namespace

absl::StatusOr<pb::OpSharding> ParseSharding(TextCursor& text) {
  pb::OpSharding sharding;
  RETURN_IF_ERROR(ParseOne(text, 0, sharding));
  JoinNamed(sharding);
  return sharding;
}

absl::Status ParseReplicaGroups(TextCursor& text, pb::HloInstructionProto& attrs) {
  if (text.Peek() == 'm') {
    auto* list = attrs.mutable_mesh_axes_replica_group_list();
    RETURN_IF_ERROR(ParseMesh(text, *list->mutable_mesh()));
    return ParseAxes(text, list->mesh(), list->mutable_axes(), nullptr);
  }
  if (text.Take("[")) {
    auto* list = attrs.mutable_iota_collective_device_list();
    const size_t begin = text.Begin();
    ASSIGN_OR_RETURN(const std::vector<int64_t> extents, text.IntsUntil("]"));
    if (extents.size() != 2) return text.ErrorAt(begin, "groups and members are two numbers");
    list->set_num_replica_groups(extents[0]);
    list->set_num_devices_per_group(extents[1]);
    return ParseIota(text, list->mutable_iota_reshape_dims(), list->mutable_iota_transpose_perm());
  }
  RETURN_IF_ERROR(text.Expect("{"));
  if (text.Take("}")) return absl::OkStatus();
  do {
    ASSIGN_OR_RETURN(const std::vector<int64_t> members, text.IntList());
    attrs.add_replica_groups()->mutable_replica_ids()->Add(members.begin(), members.end());
  } while (text.Take(","));
  return text.Expect("}");
}

}  // namespace tpusim::hlo
