#include "workloads/sharding/text/decode.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"

namespace tpusim::sharding {
namespace {

using hlo::pb::OpSharding;

int64_t ProductOf(const auto& values) {
  int64_t product = 1;
  for (int64_t value : values) product *= value;
  return product;
}

bool Tiled(const OpSharding& proto) { return proto.type() == OpSharding::OTHER; }

Axes WholeMesh(const Mesh& mesh) {
  Axes axes;
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    if (mesh.axes[i].size > 1) axes.push_back(FullAxis(mesh, static_cast<int32_t>(i)));
  }
  return axes;
}

absl::StatusOr<Mesh> MeshOfProto(const hlo::pb::MeshProto& proto) {
  Mesh mesh;
  for (const auto& axis : proto.axes()) {
    if (axis.size() <= 0 || mesh.size() > (int64_t{1} << 31) / axis.size()) {
      return UserError(fmt::format("mesh axis '{}' of size {}", axis.name(), axis.size()));
    }
    mesh.axes.push_back({axis.name(), axis.size()});
  }
  std::vector<int64_t> ids(proto.device_ids().begin(), proto.device_ids().end());
  if (proto.has_iota_transform()) {
    OpSharding iota;
    *iota.mutable_iota_reshape_dims() = proto.iota_transform().reshape_dims();
    *iota.mutable_iota_transpose_perm() = proto.iota_transform().transpose_perm();
    iota.add_tile_assignment_dimensions(mesh.size());
    ASSIGN_OR_RETURN(const auto digits, TileDigits(iota, {}));
    ids = ListOf(digits[0]);
  }
  if (!ids.empty() && !mesh.axes.empty()) {
    if (!IsPermutation(ids, mesh.size())) {
      return UserError("device ids of a mesh are not a permutation of its devices");
    }
    if (!std::ranges::is_sorted(ids)) mesh.device_ids = std::move(ids);
  }
  return mesh;
}

// `own` is the mesh that the references are to; `translated` are its axes in the
// program's mesh, empty if it is that mesh.
absl::StatusOr<Axes> AxesOfProto(const auto& protos, const Mesh& own,
                                 const std::vector<Axes>& translated) {
  Axes axes;
  for (const auto& proto : protos) {
    if (proto.mesh_axis_index() < 0 ||
        proto.mesh_axis_index() >= static_cast<int64_t>(own.axes.size())) {
      return UserError(fmt::format("axis number {} of {}", proto.mesh_axis_index(), ToString(own)));
    }
    AxisRef axis = FullAxis(own, static_cast<int32_t>(proto.mesh_axis_index()));
    if (proto.has_sub_axis_info()) {
      const int64_t whole = axis.size;
      axis.pre_size = proto.sub_axis_info().pre_size();
      axis.size = proto.sub_axis_info().size();
      if (axis.pre_size <= 0 || axis.size <= 0 || axis.size > whole || axis.pre_size > whole ||
          whole % (axis.pre_size * axis.size) != 0) {
        return UserError(
            fmt::format("piece ({}){} of an axis of size {}", axis.pre_size, axis.size, whole));
      }
    }
    ASSIGN_OR_RETURN(const Axes more, Translated(axis, translated));
    axes = Concat(axes, more);
  }
  return axes;
}

absl::StatusOr<DecodedSharding> DecodeNamed(const hlo::pb::NamedShardingProto& proto, int64_t rank,
                                            const Mesh& mesh) {
  ASSIGN_OR_RETURN(const Mesh own, MeshOfProto(proto.mesh()));
  DecodedSharding decoded;
  decoded.sharding = Replicated(rank);
  if (own.size() == 1 && (own.device_ids.empty() || mesh.size() == 1)) return decoded;
  std::vector<Axes> translated;
  if (own != mesh) {
    ASSIGN_OR_RETURN(translated, AxesInMesh(own, mesh));
  }
  if (proto.unreduced_axes_size() > 0 && proto.reduction_op() != 0) {
    return NoRule(fmt::format("a value left unreduced under reduction {} has no rule",
                              proto.reduction_op()));
  }
  ASSIGN_OR_RETURN(decoded.manual, AxesOfProto(proto.manual_axes(), own, translated));
  ASSIGN_OR_RETURN(decoded.sharding.replicated,
                   AxesOfProto(proto.replicated_axes(), own, translated));
  ASSIGN_OR_RETURN(decoded.sharding.unreduced,
                   AxesOfProto(proto.unreduced_axes(), own, translated));
  if (proto.dim_shardings_size() == 0) return decoded;
  if (proto.dim_shardings_size() != rank) {
    return UserError(fmt::format("a named sharding of {} dimensions on a value of {}",
                                 proto.dim_shardings_size(), rank));
  }
  for (int64_t i = 0; i < rank; ++i) {
    ASSIGN_OR_RETURN(decoded.sharding.dims[i].axes,
                     AxesOfProto(proto.dim_shardings(i).axes(), own, translated));
    decoded.sharding.dims[i].open = !proto.dim_shardings(i).is_closed();
  }
  return decoded;
}

// Returns what Shardy writes beside an unreduced sharding of the older form. Error: another word.
absl::StatusOr<Reduction> ReductionBeside(const OpSharding& proto) {
  for (const auto& metadata : proto.metadata()) {
    if (metadata.op_type() != "sdy::reduction_op") continue;
    if (metadata.op_name() == "MAX") return Reduction::kMax;
    if (metadata.op_name() == "MIN") return Reduction::kMin;
    if (metadata.op_name() != "SUM") {
      return NoRule(fmt::format("a value left unreduced under {} has no rule", metadata.op_name()));
    }
  }
  return Reduction::kSum;
}

absl::StatusOr<DecodedSharding> DecodeOne(const OpSharding& proto, int64_t rank, const Mesh& mesh) {
  if (proto.has_named_sharding()) return DecodeNamed(proto.named_sharding(), rank, mesh);
  DecodedSharding decoded;
  decoded.sharding = Replicated(rank);
  ASSIGN_OR_RETURN(decoded.sharding.reduction, ReductionBeside(proto));
  switch (proto.type()) {
    case OpSharding::REPLICATED:
      return decoded;
    case OpSharding::UNKNOWN:
      decoded.known = false;
      return decoded;
    case OpSharding::MANUAL:
      decoded.manual = WholeMesh(mesh);
      return decoded;
    case OpSharding::UNREDUCED:
      decoded.sharding.unreduced = WholeMesh(mesh);
      return decoded;
    case OpSharding::MAXIMAL:
      if (mesh.size() == 1) return decoded;
      return NoRule(
          "a value placed on one device only (maximal sharding) has no rule; give it a "
          "NamedSharding over the mesh");
    case OpSharding::OTHER:
      break;
    default:
      return UserError(fmt::format("a sharding of type {} where an array's is expected",
                                   static_cast<int>(proto.type())));
  }
  std::vector<int64_t> positions;
  if (!mesh.device_ids.empty()) positions = PositionOfPartition(mesh);
  ASSIGN_OR_RETURN(const auto digits, TileDigits(proto, positions));
  const int64_t devices = ProductOf(proto.tile_assignment_dimensions());
  if (devices != mesh.size()) {
    return UserError(
        fmt::format("a sharding over {} devices in a program over {}", devices, ToString(mesh)));
  }
  const int64_t subgroups =
      proto.replicate_on_last_tile_dim() ? 1 : static_cast<int64_t>(proto.last_tile_dims_size());
  if (static_cast<int64_t>(digits.size()) != rank + subgroups) {
    return UserError(
        fmt::format("a sharding of {} tile dimensions ({} of them subgroups) on a "
                    "value of {} dimensions",
                    digits.size(), subgroups, rank));
  }
  for (int64_t i = 0; i < rank; ++i) {
    ASSIGN_OR_RETURN(decoded.sharding.dims[i].axes, AxesOfDigits(digits[i], mesh));
  }
  for (int64_t i = 0; i < proto.last_tile_dims_size(); ++i) {
    ASSIGN_OR_RETURN(const Axes axes, AxesOfDigits(digits[rank + i], mesh));
    switch (proto.last_tile_dims(static_cast<int>(i))) {
      case OpSharding::REPLICATED:
        break;
      case OpSharding::MANUAL:
        decoded.manual = Concat(decoded.manual, axes);
        break;
      case OpSharding::UNREDUCED:
        decoded.sharding.unreduced = Concat(decoded.sharding.unreduced, axes);
        break;
      default:
        return NoRule(fmt::format("a subgroup of type {} has no rule",
                                  static_cast<int>(proto.last_tile_dims(static_cast<int>(i)))));
    }
  }
  return decoded;
}

// Every OpSharding in the module, tuples flattened.
std::vector<const OpSharding*> AllShardings(const hlo::Module& module) {
  std::vector<const OpSharding*> found;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* instruction : computation->instructions()) {
      if (!instruction->attrs().has_sharding()) continue;
      std::vector<const OpSharding*> work = {&instruction->attrs().sharding()};
      while (!work.empty()) {
        const OpSharding* proto = work.back();
        work.pop_back();
        found.push_back(proto);
        for (const OpSharding& leaf : proto->tuple_shardings()) work.push_back(&leaf);
      }
    }
  }
  return found;
}

// The first mesh with axes is the program's; others must be other views of the
// same devices.
absl::Status MeshFromShardy(const std::string& text, MeshTable* table) {
  ASSIGN_OR_RETURN(table->sdy, ParseMeshes(text));
  const NamedMesh* chosen = nullptr;
  for (const NamedMesh& named : table->sdy) {
    if (named.maximal || named.mesh.size() == 1) continue;
    if (chosen == nullptr) chosen = &named;
  }
  table->source = "xla.sdy.meshes";
  if (chosen == nullptr) return absl::OkStatus();
  table->mesh = chosen->mesh;
  for (const NamedMesh& named : table->sdy) {
    if (named.maximal || named.mesh.size() == 1 || named.mesh == table->mesh) continue;
    const auto translated = AxesInMesh(named.mesh, table->mesh);
    if (translated.ok()) continue;
    return NoRule(
        fmt::format("xla.sdy.meshes has two meshes that do not go together, @{} and @{}: "
                    "{}",
                    chosen->name, named.name, Message(translated.status())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::vector<Digit>>> TileDigits(const OpSharding& proto,
                                                           const std::vector<int64_t>& positions) {
  const auto& tiles = proto.tile_assignment_dimensions();
  int64_t devices = 1;
  for (int64_t tile : tiles) {
    if (tile <= 0 || devices > (int64_t{1} << 31) / tile) {
      return UserError("tile dimensions of a sharding are not positive numbers of devices");
    }
    devices *= tile;
  }
  std::vector<Digit> digits;
  if (proto.iota_reshape_dims_size() > 0) {
    const auto& dims = proto.iota_reshape_dims();
    int64_t iota = 1;
    for (int64_t dim : dims) {
      if (dim <= 0 || iota > devices / dim) return UserError("iota dimensions of a sharding");
      iota *= dim;
    }
    if (iota != devices) {
      return UserError(fmt::format("a sharding of {} tiles over {} devices", devices, iota));
    }
    std::vector<int64_t> perm(dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    if (proto.iota_transpose_perm_size() > 0) {
      perm.assign(proto.iota_transpose_perm().begin(), proto.iota_transpose_perm().end());
    }
    if (!IsPermutation(perm, dims.size())) {
      return UserError("the transpose of a sharding is no permutation");
    }
    for (int64_t dim : perm) {
      int64_t stride = 1;
      for (int i = static_cast<int>(dim) + 1; i < dims.size(); ++i) stride *= dims.Get(i);
      digits.push_back({dims.Get(static_cast<int>(dim)), stride});
    }
    digits = JoinedDigits(digits);
  }
  if (proto.iota_reshape_dims_size() == 0 || !positions.empty()) {
    std::vector<int64_t> list(proto.tile_assignment_devices().begin(),
                              proto.tile_assignment_devices().end());
    if (proto.iota_reshape_dims_size() > 0) list = ListOf(digits);
    if (static_cast<int64_t>(list.size()) != devices) {
      return UserError(fmt::format("a sharding of {} tiles over {} devices", devices, list.size()));
    }
    for (int64_t& device : list) {
      if (device < 0 || device >= devices ||
          (!positions.empty() && device >= static_cast<int64_t>(positions.size()))) {
        return UserError(fmt::format("device {} in a sharding over {}", device, devices));
      }
      if (!positions.empty()) device = positions[device];
    }
    ASSIGN_OR_RETURN(digits, DigitsOfList(std::move(list)));
  }
  std::vector<std::vector<Digit>> result;
  for (int64_t tile : tiles) {
    ASSIGN_OR_RETURN(std::vector<Digit> taken, TakeDigits(&digits, tile));
    result.push_back(std::move(taken));
  }
  return result;
}

namespace {

// The coarsest axes that all tile assignments are made of. Device lists that are
// no such thing are one as soon as one of them is taken for the order of devices.
absl::StatusOr<Mesh> MeshFromTiles(const std::vector<const OpSharding*>& shardings) {
  int64_t devices = 1;
  std::vector<const OpSharding*> tiled;
  for (const OpSharding* proto : shardings) {
    if (!Tiled(*proto) || proto->has_named_sharding()) continue;
    const int64_t size = ProductOf(proto->tile_assignment_dimensions());
    if (devices != 1 && size != devices) {
      return UserError(
          fmt::format("the program has shardings over {} and over {} devices", devices, size));
    }
    devices = size;
    tiled.push_back(proto);
  }
  if (devices <= 1) return Mesh();
  std::vector<int64_t> order;      // device at each position; empty: their own
  std::vector<int64_t> positions;  // the reverse
  while (true) {
    std::vector<std::vector<std::vector<Digit>>> assignments;
    absl::Status failure = absl::OkStatus();
    const OpSharding* culprit = nullptr;
    for (const OpSharding* proto : tiled) {
      auto digits = TileDigits(*proto, positions);
      if (!digits.ok()) {
        failure = digits.status();
        culprit = proto;
        break;
      }
      assignments.push_back(*std::move(digits));
    }
    if (failure.ok()) {
      ASSIGN_OR_RETURN(Mesh mesh, FactorMesh(assignments, devices));
      mesh.device_ids = order;
      return mesh;
    }
    const auto& list = culprit->tile_assignment_devices();
    if (!order.empty() || list.size() != devices) return failure;
    order.assign(list.begin(), list.end());
    positions.assign(devices, -1);
    for (int64_t i = 0; i < devices; ++i) {
      if (order[i] < 0 || order[i] >= devices || positions[order[i]] >= 0) return failure;
      positions[order[i]] = i;
    }
  }
}

}  // namespace

absl::StatusOr<MeshTable> FindMesh(const hlo::Module& module, int64_t num_partitions) {
  MeshTable table;
  const auto& attributes = module.fields().frontend_attributes().map();
  const auto shardy = attributes.find("xla.sdy.meshes");
  const std::vector<const OpSharding*> shardings = AllShardings(module);
  if (shardy != attributes.end()) RETURN_IF_ERROR(MeshFromShardy(shardy->second, &table));
  if (table.mesh.size() == 1) {
    for (const OpSharding* proto : shardings) {
      if (!proto->has_named_sharding()) continue;
      const auto& named = proto->named_sharding();
      ASSIGN_OR_RETURN(const Mesh mesh, MeshOfProto(named.tuple_shardings_size() > 0
                                                        ? named.tuple_shardings(0).mesh()
                                                        : named.mesh()));
      if (mesh.size() == 1) continue;
      if (table.mesh.size() > 1 && mesh != table.mesh) {
        return NoRule(
            fmt::format("shardings over {} and over {}; a program over several meshes "
                        "has no rule",
                        ToString(table.mesh), ToString(mesh)));
      }
      table.mesh = mesh;
      table.source = "named shardings";
    }
  }
  if (table.mesh.size() == 1) {
    ASSIGN_OR_RETURN(table.mesh, MeshFromTiles(shardings));
    if (table.mesh.size() > 1) table.source = "tile assignments";
  }
  if (num_partitions > 1 && table.mesh.size() == 1) {
    // Nothing in the program is sharded: everybody computes the same.
    table.mesh = Mesh{{{"axis_0", num_partitions}}, {}};
    table.source = "number of partitions";
  }
  if (num_partitions != 0 && num_partitions != table.mesh.size()) {
    return UserError(
        fmt::format("the workload says {} partitions, but {} has {} ({}); export it again, or "
                    "remove one of the "
                    "two",
                    num_partitions, table.source, table.mesh.size(), ToString(table.mesh)));
  }
  return table;
}

absl::StatusOr<std::vector<DecodedSharding>> DecodeOpSharding(const OpSharding& proto,
                                                              const hlo::Shape& shape,
                                                              const Mesh& mesh) {
  const std::vector<const hlo::Shape*> leaves = hlo::Leaves(shape);
  if (proto.named_sharding().tuple_shardings_size() > 0) {
    if (static_cast<size_t>(proto.named_sharding().tuple_shardings_size()) != leaves.size()) {
      return UserError(fmt::format("a tuple of {} shardings on {}",
                                   proto.named_sharding().tuple_shardings_size(),
                                   shape.ToString()));
    }
    std::vector<DecodedSharding> named;
    for (size_t i = 0; i < leaves.size(); ++i) {
      ASSIGN_OR_RETURN(DecodedSharding one,
                       DecodeNamed(proto.named_sharding().tuple_shardings(static_cast<int>(i)),
                                   leaves[i]->rank(), mesh));
      named.push_back(std::move(one));
    }
    return named;
  }
  std::vector<const OpSharding*> protos;
  if (proto.type() == OpSharding::TUPLE) {
    for (const OpSharding& leaf : proto.tuple_shardings()) protos.push_back(&leaf);
    // XLA writes one replicated entry for an empty tuple.
    if (protos.size() != leaves.size() && !leaves.empty()) {
      return UserError(
          fmt::format("a tuple of {} shardings on {}", protos.size(), shape.ToString()));
    }
  } else {
    protos.assign(leaves.size(), &proto);
  }
  std::vector<DecodedSharding> decoded;
  for (size_t i = 0; i < leaves.size(); ++i) {
    ASSIGN_OR_RETURN(DecodedSharding one, DecodeOne(*protos[i], leaves[i]->rank(), mesh));
    decoded.push_back(std::move(one));
  }
  return decoded;
}

}  // namespace tpusim::sharding
