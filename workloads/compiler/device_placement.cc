#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/str_split.h"
#include "configs/status_macros.h"
#include "workloads/compiler/stages.h"

namespace tpusim::compiler {
namespace {

absl::StatusOr<DevicePlacement> ExplicitOrder(const std::string& text, int64_t partitions,
                                              const configs::Config& config) {
  DevicePlacement placement;
  std::set<int64_t> seen;
  for (const std::string& item : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const bool digits =
        !item.empty() && item.size() < 10 &&
        std::all_of(item.begin(), item.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    const int64_t id = digits ? std::stoll(item) : -1;
    if (id < 0 || id >= config.devices() || !seen.insert(id).second) {
      return UserError(fmt::format(
          "--device-order: '{}' is not a device of {} that is still free (0 to {}); give 'ids' or "
          "one device per partition, separated by commas",
          item, config.name, config.devices() - 1));
    }
    placement.device_of_partition.push_back(id);
  }
  if (static_cast<int64_t>(placement.device_of_partition.size()) != partitions) {
    return UserError(
        fmt::format("--device-order lists {} devices, but the program has {} partitions",
                    placement.device_of_partition.size(), partitions));
  }
  placement.rule = "as listed by --device-order";
  return placement;
}

absl::StatusOr<DevicePlacement> PlaceByCoordinates(const tpusim::Workload& workload,
                                                   int64_t partitions,
                                                   const configs::Config& config) {
  DevicePlacement placement;
  placement.rule = "coordinates from the exporter";
  if (workload.coordinates_size() != partitions) {
    return UserError(fmt::format("the workload has coordinates for {} devices and {} partitions",
                                 workload.coordinates_size(), partitions));
  }
  const auto& shape = config.topology.shape();
  std::set<int64_t> seen;
  for (const auto& c : workload.coordinates()) {
    const configs::Coordinates at{{c.x(), c.y(), c.z()}};
    for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
      if (at.at[axis] < 0 || at.at[axis] >= shape[axis]) {
        return UserError(fmt::format("the workload places a partition at ({},{},{}), outside of {}",
                                     c.x(), c.y(), c.z(), config.name));
      }
    }
    const int64_t per_chip = config.topology.devices_per_chip();
    if (c.core_on_chip() < 0 || c.core_on_chip() >= per_chip || c.slice_index() < 0 ||
        c.slice_index() >= config.topology.slices()) {
      return UserError(fmt::format(
          "the workload places a partition on device {} of a chip of slice {}; {} has {} device(s) "
          "per chip and {} slice(s)",
          c.core_on_chip(), c.slice_index(), config.name, per_chip, config.topology.slices()));
    }
    const int64_t device =
        config.topology.ChipAt(at, c.slice_index()) * per_chip + c.core_on_chip();
    if (!seen.insert(device).second) {
      return UserError(
          fmt::format("the workload places two partitions at ({},{},{})", c.x(), c.y(), c.z()));
    }
    placement.device_of_partition.push_back(device);
  }
  return placement;
}

}  // namespace

absl::Status CheckPartitions(int64_t partitions, const configs::Config& config) {
  if (partitions > config.devices()) {
    return UserError(fmt::format(
        "the program has {} partitions, but {} has only {} devices; choose a larger slice with "
        "--config or export for a smaller mesh",
        partitions, config.name, config.devices()));
  }
  return absl::OkStatus();
}

absl::StatusOr<DevicePlacement> PlacePartitions(const tpusim::Workload& workload,
                                                const sharding::Mesh& mesh, int64_t partitions,
                                                const configs::Config& config,
                                                const std::string& option) {
  RETURN_IF_ERROR(CheckPartitions(partitions, config));
  if (option == "ids") {
    DevicePlacement placement;
    for (int64_t p = 0; p < partitions; ++p) placement.device_of_partition.push_back(p);
    placement.rule = "partition i on device i (--device-order=ids)";
    return placement;
  }
  if (!option.empty()) return ExplicitOrder(option, partitions, config);
  if (workload.coordinates_size() > 0) return PlaceByCoordinates(workload, partitions, config);
  std::vector<int64_t> shape;
  for (const sharding::MeshAxis& axis : mesh.axes) shape.push_back(axis.size);
  if (mesh.size() != partitions || shape.empty()) shape = {partitions};
  DevicePlacement placement;
  ASSIGN_OR_RETURN(placement.device_of_partition,
                   configs::DeviceOrder(config, shape, workload.jax_version(), &placement.rule));
  return placement;
}

}  // namespace tpusim::compiler
