#include "configs/cloud_names.h"

#include <algorithm>
#include <array>

#include "configs/number_text.h"
#include "configs/slices.h"

namespace tpusim::configs {
namespace {

struct Series {
  std::string_view chip;
  int64_t counted_per_chip = 1;
};
constexpr Series kSeries[] = {{"v2", 2},  {"v3", 2},  {"v4", 2}, {"v5p", 2},
                              {"v5e", 1}, {"v6e", 1}, {"v7x", 2}};

struct Spelling {
  std::string_view name, chip;
};
constexpr Spelling kSpellings[] = {{"v5litepod", "v5e"}, {"v5lite", "v5e"}, {"tpu7x", "v7x"}};
// Types of machines; "4t" behind it are four chips.
constexpr Spelling kMachines[] = {{"ct4p-hightpu-", "v4"},
                                  {"ct5lp-hightpu-", "v5e"},
                                  {"ct5p-hightpu-", "v5p"},
                                  {"ct6e-standard-", "v6e"},
                                  {"tpu7x-standard-", "v7x"}};

}  // namespace

std::string Respelled(std::string_view name) {
  const size_t end = name.find_first_of("-:");
  if (end == std::string_view::npos) return std::string(name);
  std::string_view chip = name.substr(0, end);
  for (const Spelling& spelling : kSpellings) {
    if (spelling.name == chip) chip = spelling.chip;
  }
  return std::string(chip).append("-").append(name.substr(end + 1));
}

std::optional<CloudName> ParseCloudName(std::string_view given) {
  for (const Spelling& machine : kMachines) {
    if (!given.starts_with(machine.name) || !given.ends_with('t')) continue;
    const std::string_view count = given.substr(machine.name.size());
    const std::optional<int64_t> chips = NumberIn<int64_t>(count.substr(0, count.size() - 1));
    if (chips && *chips > 0) return CloudName{std::string(machine.chip), *chips};
  }
  const std::string name = Respelled(given);
  const size_t dash = name.find('-');
  if (dash == std::string::npos) return std::nullopt;
  const std::string_view parts = name;
  const std::optional<int64_t> number = NumberIn<int64_t>(parts.substr(dash + 1));
  if (!number || *number < 0) return std::nullopt;
  const int64_t counted = *number;
  for (const Series& series : kSeries) {
    if (series.chip != parts.substr(0, dash)) continue;
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
