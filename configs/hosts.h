// Hosts: the chips that share one, and with it the host's network card.
#ifndef TPUSIM_CONFIGS_HOSTS_H_
#define TPUSIM_CONFIGS_HOSTS_H_

#include <cstdint>
#include <vector>

#include "configs/topology.h"

namespace tpusim::configs {

struct Hosts {
  std::vector<int64_t> of_chip;  // HostOf each chip
  std::vector<int64_t> chips;    // how many chips of the slice each host has
};

// Returns the hosts of the slice; none in a single slice, where nothing uses a host's network card.
Hosts HostsOf(const Config& config);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_HOSTS_H_
