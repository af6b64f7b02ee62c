#include "tools/tpusim/find/holding_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/config.h"
#include "configs/status_macros.h"

namespace tpusim::tools {

absl::StatusOr<std::vector<HoldingSlice>> HoldingSlices(int64_t partitions,
                                                        const std::vector<std::string>& chips,
                                                        bool larger) {
  std::vector<HoldingSlice> all;
  for (const std::string& chip : configs::ChipNames()) {
    if (!chips.empty() && std::ranges::find(chips, chip) == chips.end()) continue;
    std::vector<HoldingSlice> of_chip;
    for (const std::string& slice : configs::SliceNames(chip)) {
      HoldingSlice s;
      s.config = fmt::format("{}-{}", chip, slice);
      s.chip = chip;
      ASSIGN_OR_RETURN(const configs::Config config, configs::LoadConfig(s.config, {}));
      s.devices = config.devices();
      s.hbm = config.chip.hbm.bytes;
      if (s.devices >= partitions) of_chip.push_back(std::move(s));
    }
    int64_t fewest = INT64_MAX;
    for (const HoldingSlice& s : of_chip) fewest = std::min(fewest, s.devices);
    for (HoldingSlice& s : of_chip) {
      if (larger || s.devices == fewest) all.push_back(std::move(s));
    }
  }
  std::ranges::stable_sort(
      all, {}, [](const HoldingSlice& slice) { return std::pair(slice.devices, slice.hbm); });
  return all;
}

}  // namespace tpusim::tools
