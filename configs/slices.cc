#include "configs/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "configs/names.h"
#include "configs/number_text.h"
#include "configs/status_macros.h"

namespace tpusim::configs {

bool ParseShape(std::string_view text, std::array<int64_t, kMaxAxes>* shape) {
  *shape = {1, 1, 1};
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const size_t end = std::min(text.find('x'), text.size());
    const std::optional<int64_t> length = NumberIn<int64_t>(text.substr(0, end));
    if (!length || *length < 1) return false;
    (*shape)[axis] = *length;
    // A name needs two axes: "16" alone does not say where the chips are.
    if (end == text.size()) return axis >= 1;
    text.remove_prefix(end + 1);
  }
  return false;
}

std::string ShapeName(const std::array<int64_t, kMaxAxes>& shape, int64_t axes) {
  std::string name = fmt::format("{}x{}", shape[0], shape[1]);
  if (axes == 3) name += fmt::format("x{}", shape[2]);
  return name;
}

std::string NearestSlice(const SliceRules& rules, const std::array<int64_t, kMaxAxes>& shape) {
  // The same box turned, else the closest number of chips, else the closest
  // sides; among equals the first.
  const auto turned = [](std::array<int64_t, kMaxAxes> sides) {
    std::sort(sides.begin(), sides.end());
    return sides;
  };
  const auto chips = [](const std::array<int64_t, kMaxAxes>& s) {
    return std::log2(static_cast<double>(s[0])) + std::log2(static_cast<double>(s[1])) +
           std::log2(static_cast<double>(s[2]));
  };
  std::string nearest;
  std::tuple<bool, double, int64_t> best;
  for (const std::string& slice : rules.slices) {
    std::array<int64_t, kMaxAxes> other;
    TPUSIM_CHECK(ParseShape(slice, &other), "the loader checked the slices");
    int64_t sides = 0;
    for (int axis = 0; axis < kMaxAxes; ++axis) {
      sides += std::abs(turned(shape)[axis] - turned(other)[axis]);
    }
    const std::tuple<bool, double, int64_t> distance = {
        turned(shape) != turned(other), std::abs(chips(shape) - chips(other)), sides};
    if (nearest.empty() || distance < best) {
      nearest = slice;
      best = distance;
    }
  }
  return nearest;
}

std::string SliceList(const SliceRules& rules) {
  constexpr size_t kMost = 16;
  if (rules.slices.size() <= kMost) return Join(rules.slices, ", ");
  const std::vector<std::string> first(rules.slices.begin(), rules.slices.begin() + kMost);
  return fmt::format("{}, ... {} (`tpusim configs` lists all {})", Join(first, ", "),
                     rules.slices.back(), rules.slices.size());
}

absl::StatusOr<Topology> MakeSlices(const ChipParams& chip, std::string_view text, int64_t count) {
  constexpr std::string_view kTwisted = "_twisted";
  const SliceRules& rules = chip.slices;
  const std::string valid = SliceList(rules);
  const bool twisted = text.ends_with(kTwisted);
  std::string_view box = text;
  if (twisted) box.remove_suffix(kTwisted.size());
  std::array<int64_t, kMaxAxes> shape;
  if (!ParseShape(box, &shape)) {
    return UserError(fmt::format("\"{}\" is not a slice of {}: write its chips per axis, one of {}",
                                 text, chip.name, valid));
  }
  const bool flat = rules.axes == 3 || shape[2] == 1;
  const std::string name = ShapeName(shape, rules.axes);
  if (!flat || std::find(rules.slices.begin(), rules.slices.end(), name) == rules.slices.end()) {
    return UserError(fmt::format("{} has no slice {}; the nearest is {}; slices that exist: {}",
                                 chip.name, text, NearestSlice(rules, shape), valid));
  }
  const Twist twist = twisted ? TwistOf(shape) : Twist{};
  if (twisted && (!rules.twisted || twist == Twist{} || shape[0] % 4 != 0)) {
    return UserError(fmt::format("{} has no twisted torus of {}: {}", chip.name, name,
                                 rules.twisted
                                     ? "one side must be half or twice the two others, which are "
                                       "equal, all multiples of 4, as in 4x4x8 and 4x8x8"
                                     : "its tori are not twisted"));
  }
  return Topology(shape, WrapsOf(rules, shape), chip.devices, twist, count);
}

}  // namespace tpusim::configs
