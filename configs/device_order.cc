// The order in which JAX's make_mesh lays a logical mesh over a slice: a fixed
// order for small boxes that have one, else the general axis assignment.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

#include "configs/mesh_assignment.h"
#include "configs/slices.h"
#include "configs/status_macros.h"
#include "configs/topology.h"

namespace tpusim::configs {
namespace {

using Shape = std::array<int64_t, kMaxAxes>;

// Later than every release.
constexpr JaxVersion kNewestJax = {{std::numeric_limits<int64_t>::max(), 0, 0}};

// A box of chips at the origin of the slice.
int64_t Volume(const Shape& box) { return box[0] * box[1] * box[2]; }

// JAX numbers the chips of a slice tile by tile, x minor, within a tile and among tiles.
struct Tiling {
  Tiling(const Shape& slice, const Shape& wanted) {
    for (int axis = 0; axis < kMaxAxes; ++axis) {
      tile[axis] = std::min(wanted[axis], slice[axis]);
      if (slice[axis] % tile[axis] != 0) {
        whole = false;
        tile[axis] = 1;
      }
      tiles[axis] = slice[axis] / tile[axis];
    }
  }
  Shape At(int64_t chip) const {
    int64_t within = chip % Volume(tile), which = chip / Volume(tile);
    Shape at;
    for (int axis = 0; axis < kMaxAxes; ++axis) {
      at[axis] = which % tiles[axis] * tile[axis] + within % tile[axis];
      which /= tiles[axis];
      within /= tile[axis];
    }
    return at;
  }

  Shape tile, tiles;
  bool whole = true;  // tiles of the wanted size fill the slice
};

// JAX gives a smaller mesh the first chips. The box that the first `count` fill, if they fill one.
std::optional<Shape> BoxOfFirst(const Shape& slice, const Shape& wanted_tile, int64_t count) {
  const Tiling tiling(slice, wanted_tile);
  if (!tiling.whole) return std::nullopt;
  Shape extent = {0, 0, 0};
  for (int64_t i = 0; i < count; ++i) {
    const Shape at = tiling.At(i);
    for (int axis = 0; axis < kMaxAxes; ++axis) extent[axis] = std::max(extent[axis], at[axis] + 1);
  }
  if (Volume(extent) != count) return std::nullopt;
  return extent;
}

// Returns the box that JAX takes in place of a slice with holes: the smallest sum of sides, then
// the longest in x.
std::optional<Shape> CompactBox(const Shape& slice, int64_t count) {
  std::optional<Shape> best;
  for (int64_t z = 1; z <= std::min(slice[2], count); ++z) {
    for (int64_t y = 1; y <= std::min(slice[1], count); ++y) {
      const int64_t x = count / (y * z);
      if (x * y * z != count || x > slice[0]) continue;
      if (!best || x + y + z < (*best)[0] + (*best)[1] + (*best)[2]) best = Shape{x, y, z};
    }
  }
  return best;
}

// The first `count` entries of JAX's list of devices: those of a chip are side by side.
std::vector<int64_t> FirstListed(const Topology& topology, const Shape& wanted_tile,
                                 int64_t count) {
  const Tiling tiling(topology.shape(), wanted_tile);
  const int64_t cores = topology.devices_per_chip();
  std::vector<int64_t> result;
  for (int64_t i = 0; i < count; ++i) {
    result.push_back(topology.ChipAt({tiling.At(i / cores)}) * cores + i % cores);
  }
  return result;
}

// The devices of a box at the origin, x minor, those of a chip side by side.
std::vector<int64_t> BoxDevices(const Topology& topology, const Shape& box) {
  const int64_t cores = topology.devices_per_chip();
  std::vector<int64_t> result;
  for (int64_t i = 0; i < Volume(box) * cores; ++i) {
    const int64_t chip = i / cores;
    const Coordinates c = {{chip % box[0], chip / box[0] % box[1], chip / (box[0] * box[1])}};
    result.push_back(topology.ChipAt(c) * cores + i % cores);
  }
  return result;
}

bool Fits(const Shape& box, const Shape& frame) {
  return box[0] <= frame[0] && box[1] <= frame[1] && box[2] <= frame[2];
}

const TrayOrder* FindTray(const DeviceOrderRules& rules, const std::optional<Shape>& box,
                          const std::vector<int64_t>& mesh, int64_t partitions,
                          const JaxVersion& jax) {
  constexpr Shape kAny = {0, 0, 0};
  for (const TrayOrder& tray : rules.trays) {
    if (jax < tray.since) continue;
    if (partitions % tray.devices != 0) continue;
    if (tray.last_axis_only ? mesh.empty() || mesh.back() != tray.devices
                            : partitions / tray.devices > tray.repeats) {
      continue;
    }
    if (tray.shape != kAny && (!box || tray.shape != *box)) continue;
    if (tray.within != kAny && (!box || !Fits(*box, tray.within))) continue;
    if (tray.one_axis_only && std::find(mesh.begin(), mesh.end(), partitions) == mesh.end()) {
      continue;
    }
    if (!tray.listed && !box) continue;
    return &tray;
  }
  return nullptr;
}

// The devices, tray after tray, each in the order of the tray.
std::vector<int64_t> InTrays(const TrayOrder& tray, const std::vector<int64_t>& devices) {
  std::vector<int64_t> result;
  for (size_t start = 0; start < devices.size(); start += tray.order.size()) {
    for (int64_t position : tray.order) {
      result.push_back(devices[start + static_cast<size_t>(position)]);
    }
  }
  return result;
}

absl::StatusOr<int64_t> Partitions(const std::vector<int64_t>& mesh, const Config& config) {
  int64_t partitions = 1;
  for (int64_t size : mesh) {
    if (size < 1) {
      return UserError(
          fmt::format("mesh {}: an axis has at least one device", fmt::join(mesh, "x")));
    }
    // Stops long before the product could overflow.
    if (size > config.devices() || partitions * size > config.devices()) {
      double needed = 1;
      for (int64_t s : mesh) needed *= static_cast<double>(s);
      return UserError(fmt::format(
          "the program has {:.0f} partitions (mesh {}), {} has {} devices: take a larger slice or "
          "a smaller mesh",
          needed, fmt::join(mesh, "x"), config.name, config.devices()));
    }
    partitions *= size;
  }
  return partitions;
}

// Returns how many slices each mesh axis spans: slices divide the leading axes, as far as each
// divides. Error: they do not.
absl::StatusOr<std::vector<int64_t>> SlicesPerAxis(const Config& config,
                                                   const std::vector<int64_t>& mesh) {
  std::vector<int64_t> counts;
  int64_t left = config.topology.slices();
  for (const int64_t size : mesh) {
    counts.push_back(std::gcd(size, left));
    left /= counts.back();
  }
  if (left == 1) return counts;
  return UserError(fmt::format(
      "the axes of mesh {} cannot be divided among the {} slices of {}: take a mesh whose leading "
      "axis is a multiple of {}, or state the device order",
      fmt::join(mesh, "x"), config.topology.slices(), config.name, config.topology.slices()));
}

// Lays out several slices as create_hybrid_device_mesh does: each mesh axis goes over the slices
// first, then inside them, in the order of one slice.
absl::StatusOr<std::vector<int64_t>> HybridOrder(const Config& config,
                                                 const std::vector<int64_t>& mesh,
                                                 std::string_view jax, std::string* rule) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> over, SlicesPerAxis(config, mesh));
  std::vector<int64_t> inside = mesh;
  for (size_t axis = 0; axis < mesh.size(); ++axis) inside[axis] /= over[axis];
  const Topology& topology = config.topology;
  Config slice = config;
  std::array<bool, kMaxAxes> closes;
  Twist twist = {};
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    closes[axis] = topology.wraps(axis) || topology.IsTwisted(axis);
  }
  if (topology.twisted()) twist = TwistOf(topology.shape());
  slice.topology = Topology(topology.shape(), closes, topology.devices_per_chip(), twist);
  ASSIGN_OR_RETURN(const std::vector<int64_t> order, DeviceOrder(slice, inside, jax, rule));
  if (rule != nullptr) {
    *rule =
        fmt::format("create_hybrid_device_mesh order of {} slices over mesh {}: in each slice {}",
                    topology.slices(), fmt::join(mesh, "x"), *rule);
  }
  int64_t partitions = 1;
  for (const int64_t size : mesh) partitions *= size;
  std::vector<int64_t> devices;
  for (int64_t partition = 0; partition < partitions; ++partition) {
    int64_t rest = partition, which = 0, at = 0, slice_stride = 1, stride = 1;
    for (size_t axis = mesh.size(); axis-- > 0;) {
      const int64_t index = rest % mesh[axis];
      rest /= mesh[axis];
      which += index / inside[axis] * slice_stride;
      at += index % inside[axis] * stride;
      slice_stride *= over[axis];
      stride *= inside[axis];
    }
    devices.push_back(which * slice.topology.devices() + order[at]);
  }
  return devices;
}

}  // namespace

JaxVersion ParseJaxVersion(std::string_view text) {
  JaxVersion version;
  const char* at = text.data();
  const char* end = at + text.size();
  for (int64_t& number : version.numbers) {
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc() || after == end || *after != '.') break;
    at = after + 1;
  }
  return version;
}

absl::StatusOr<std::vector<int64_t>> DeviceOrder(const Config& config,
                                                 const std::vector<int64_t>& mesh_shape,
                                                 std::string_view jax, std::string* rule) {
  const Topology& topology = config.topology;
  const DeviceOrderRules& rules = config.chip.device_order;
  const int64_t cores = topology.devices_per_chip();
  const int64_t axes = config.chip.slices.axes;
  ASSIGN_OR_RETURN(const int64_t partitions, Partitions(mesh_shape, config));
  // A program of one slice's size or less leaves the other slices idle.
  const int64_t in_slice = topology.devices() / topology.slices();
  if (topology.slices() > 1 && partitions > in_slice) return HybridOrder(config, mesh_shape, jax, rule);
  const std::string mesh = fmt::format("{}", fmt::join(mesh_shape, "x"));
  const JaxVersion version = jax.empty() ? kNewestJax : ParseJaxVersion(jax);

  const auto done = [&](std::vector<int64_t> devices, std::string_view how,
                        std::string_view where) {
    TPUSIM_CHECK(static_cast<int64_t>(devices.size()) == partitions, "one device per partition");
    if (rule != nullptr) *rule = fmt::format("make_mesh order of mesh {}: {}{}", mesh, how, where);
    return devices;
  };
  const auto listed = [&] { return FirstListed(topology, rules.enumeration_tile, partitions); };
  const int64_t idle = topology.devices() - partitions;

  // One device of a chip of several, or a chip that takes JAX's list as it is:
  // no box needed.
  std::optional<Shape> box = topology.shape();
  std::string where;
  if (idle > 0) {
    where = fmt::format("; {} devices idle", idle);
    if (partitions == 1 && cores > 1) return done(listed(), "the first device", where);
    box = std::nullopt;
    if (partitions % cores == 0) {
      box = BoxOfFirst(topology.shape(), rules.enumeration_tile, partitions / cores);
      if (!box) box = CompactBox(topology.shape(), partitions / cores);
    }
    if (box) {
      where = fmt::format(", on the {} chips at the origin; {} devices idle", ShapeName(*box, axes),
                          idle);
    }
  }
  if (const TrayOrder* tray = FindTray(rules, box, mesh_shape, partitions, version)) {
    return done(InTrays(*tray, tray->listed ? listed() : BoxDevices(topology, *box)),
                partitions == tray->devices
                    ? fmt::format("the fixed order of JAX for {} devices", partitions)
                    : fmt::format("the fixed order of JAX for each {} devices", tray->devices),
                where);
  }
  if (rules.listed) return done(listed(), "JAX's list of devices as it is", where);
  if (!box) {
    return UserError(
        partitions % cores != 0
            ? fmt::format("{} partitions do not fill chips of {} devices; state the device order",
                          partitions, cores)
            : fmt::format("{} of the {} devices of {} do not form a box; take a mesh that does, or "
                          "state the device order",
                          partitions, topology.devices(), config.name));
  }

  std::vector<std::vector<int64_t>> coordinates;
  std::string how;
  {
    std::vector<int64_t> physical(box->begin(), box->end());
    if (cores > 1) physical.push_back(cores);
    const bool chip_first =
        cores > 1 && rules.chip_first_since && version >= *rules.chip_first_since;
    std::optional<MeshAssignment> assignment =
        AssignWholeAxes(physical, mesh_shape, /*last_first=*/chip_first);
    how = chip_first ? "whole physical axes per mesh axis, devices of a chip first"
                     : "whole physical axes per mesh axis";
    if (!assignment) {
      assignment = AssignSplitAxes(physical, mesh_shape);
      how = rules.splits_physical_axes
                ? "physical axes split"
                : "physical axes split, which make_mesh refuses on this chip and "
                  "create_device_mesh does on request";
    }
    if (!assignment) {
      return UserError(fmt::format(
          "JAX cannot lay a mesh {} over {} chips of {}: its axes do not divide those of the "
          "slice; state the device order",
          mesh, ShapeName(*box, axes), config.name));
    }
    coordinates = MeshCoordinates(*assignment, mesh_shape);
  }

  std::vector<int64_t> devices;
  for (const std::vector<int64_t>& at : coordinates) {
    const int64_t chip = topology.ChipAt({{at[0], at[1], at[2]}});
    devices.push_back(chip * cores + (at.size() > 3 ? at[3] : 0));
  }
  return done(std::move(devices), how, where);
}

std::vector<int64_t> JaxDeviceNumbers(const Config& config) {
  const int64_t per_slice = config.topology.devices() / config.topology.slices();
  const std::vector<int64_t> listed =
      FirstListed(config.topology, config.chip.device_order.enumeration_tile, per_slice);
  std::vector<int64_t> numbers(static_cast<size_t>(config.topology.devices()));
  for (int64_t i = 0; i < config.topology.devices(); ++i) {
    numbers[i / per_slice * per_slice + listed[i % per_slice]] = i;
  }
  return numbers;
}

}  // namespace tpusim::configs
