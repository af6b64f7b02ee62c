#include "configs/cloud_names.h"

#include <algorithm>
#include <array>

#include "configs/number_text.h"
#include "configs/slices.h"

namespace tpusim::configs {
namespace {

struct Series {
  std::string_view name, chip;
  int64_t counted_per_chip = 1;
};
constexpr Series kSeries[] = {{"v2", "v2", 2},   {"v3", "v3", 2},         {"v4", "v4", 2},
                              {"v5p", "v5p", 2}, {"v5litepod", "v5e", 1}, {"v5e", "v5e", 1},
                              {"v6e", "v6e", 1}};

}  // namespace

std::optional<CloudName> ParseCloudName(std::string_view name) {
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> number = NumberIn<int64_t>(name.substr(dash + 1));
  if (!number || *number < 0) return std::nullopt;
  const int64_t counted = *number;
  for (const Series& series : kSeries) {
    if (series.name != name.substr(0, dash)) continue;
    const bool whole = counted % series.counted_per_chip == 0;
    return CloudName{std::string(series.chip), whole ? counted / series.counted_per_chip : 0};
  }
  return std::nullopt;
}

std::string SliceOfChips(const std::vector<std::string>& slices, int64_t chips) {
  std::string best;
  int64_t shortest = 0;
  for (const std::string& slice : slices) {
    std::array<int64_t, kMaxAxes> shape{};
    if (!ParseShape(slice, &shape)) continue;
    int64_t product = 1;
    for (const int64_t length : shape) product *= length;
    if (product != chips) continue;
    const int64_t longest = *std::max_element(shape.begin(), shape.end());
    if (!best.empty() && longest >= shortest) continue;
    best = slice;
    shortest = longest;
  }
  return best;
}

}  // namespace tpusim::configs
