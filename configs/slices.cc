#include "configs/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "configs/names.h"
#include "configs/status_macros.h"

namespace tpusim::configs {

bool ParseShape(std::string_view text, std::array<int64_t, kMaxAxes>* shape) {
  *shape = {1, 1, 1};
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const size_t end = std::min(text.find('x'), text.size());
    const char* last = text.data() + end;
    int64_t length = 0;
    const auto [stop, error] = std::from_chars(text.data(), last, length);
    if (end == 0 || error != std::errc() || stop != last || length < 1) return false;
    (*shape)[axis] = length;
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

absl::StatusOr<Topology> MakeSlice(const ChipParams& chip, std::string_view text) {
  const SliceRules& rules = chip.slices;
  const std::string valid = Join(rules.slices, ", ");
  std::array<int64_t, kMaxAxes> shape;
  if (!ParseShape(text, &shape)) {
    return UserError(fmt::format("\"{}\" is not a slice of {}: write its chips per axis, one of {}",
                                 text, chip.name, valid));
  }
  const bool flat = rules.axes == 3 || shape[2] == 1;
  const std::string name = ShapeName(shape, rules.axes);
  if (!flat || std::find(rules.slices.begin(), rules.slices.end(), name) == rules.slices.end()) {
    return UserError(
        fmt::format("{} has no slice {}; slices that exist: {}", chip.name, text, valid));
  }
  return Topology(shape, WrapsOf(rules.wrap, shape), chip.devices);
}

}  // namespace tpusim::configs
