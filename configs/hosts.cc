#include "configs/hosts.h"

namespace tpusim::configs {

Hosts HostsOf(const Config& config) {
  Hosts hosts;
  if (config.topology.slices() == 1) return hosts;
  hosts.chips.resize(static_cast<size_t>(HostCount(config)));
  for (int64_t chip = 0; chip < config.topology.chips(); ++chip) {
    hosts.of_chip.push_back(HostOf(config, chip));
    ++hosts.chips[hosts.of_chip.back()];
  }
  return hosts;
}

}  // namespace tpusim::configs
