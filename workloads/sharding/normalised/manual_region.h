// Regions in which the program itself says what every device does (shard_map).
#ifndef TPUSIM_WORKLOADS_SHARDING_NORMALISED_MANUAL_REGION_H_
#define TPUSIM_WORKLOADS_SHARDING_NORMALISED_MANUAL_REGION_H_

#include <cstdint>
#include <vector>

#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

// A manual region is a `call` from global operands to a global result. Its body has the shapes of
// one shard and may hold collectives over partition ids.
struct ManualRegion {
  std::vector<Sharding> operands;  // what the body's parameters are shards of
  std::vector<Sharding> results;   // what its results are shards of
  // Element of the body's root tuple that is result i; empty if it is no tuple.
  std::vector<int64_t> result_index;
  Axes manual_axes;
  // Some axes of the mesh are left to the compiler: the body's values have
  // shardings over them and it is partitioned like any computation, after which
  // its parameters and results are shards of `operands` and `results`. Else the
  // body says what a device does.
  bool partitioned = false;
};

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_NORMALISED_MANUAL_REGION_H_
