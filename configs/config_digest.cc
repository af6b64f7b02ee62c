#include "configs/config_digest.h"

#include "configs/chip_schema.h"
#include "configs/instructions.h"

namespace tpusim::configs {
namespace {

void AddTo(Digest& digest, const SliceRules& rules) {
  const auto& [axes, max, wrap, twisted, slices] = rules;
  digest.Add(axes, max, static_cast<int>(wrap), twisted, slices);
}

void AddTo(Digest& digest, const TrayOrder& tray) {
  const auto& [devices, shape, within, one_axis_only, last_axis_only, repeats, listed, since,
               order] = tray;
  digest.Add(devices, shape, within, one_axis_only, last_axis_only, repeats, listed, since.numbers,
             order);
}

void AddTo(Digest& digest, const DeviceOrderRules& rules) {
  const auto& [enumeration_tile, splits_physical_axes, listed, chip_first, trays] = rules;
  digest.Add(enumeration_tile, splits_physical_axes, listed, chip_first.has_value(),
             chip_first.value_or(JaxVersion()).numbers, trays.size());
  for (const TrayOrder& tray : trays) AddTo(digest, tray);
}

void AddTo(Digest& digest, const Topology& topology) {
  digest.Add(topology.shape(), topology.slices(), topology.devices_per_chip());
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    digest.Add(topology.wraps(axis), topology.IsTwisted(axis));
  }
}

// Its numbers are those of the table of parameters.
void AddTo(Digest& digest, const ChipParams& chip) {
  for (const Parameter& parameter : ChipParameters()) digest.Add(parameter.get(chip));
  digest.Add(chip.name, chip.compiler.like);
  AddTo(digest, *chip.instructions);
  AddTo(digest, chip.slices);
  AddTo(digest, chip.device_order);
}

}  // namespace

void AddTo(Digest& digest, const Config& config) {
  // Overrides are in the values that they have set; warnings are about these.
  const auto& [name, chip, topology, overrides, warnings] = config;
  digest.Add(name);
  AddTo(digest, chip);
  AddTo(digest, topology);
}

}  // namespace tpusim::configs
