// Slices that have a device for every partition of a program.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_HOLDING_SLICES_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_HOLDING_SLICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"

namespace tpusim::tools {

struct HoldingSlice {
  std::string config, chip;
  int64_t devices = 0;
  Bytes hbm{0};  // of one device
};

// Returns, for each chip (empty: for all), the slices that have as many devices as partitions, or
// fewest of all that have enough; with `larger` all that have enough. The smallest first.
absl::StatusOr<std::vector<HoldingSlice>> HoldingSlices(int64_t partitions,
                                                        const std::vector<std::string>& chips,
                                                        bool larger);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_HOLDING_SLICES_H_
