#include "sim/symmetry/turns.h"

#include <algorithm>
#include <optional>

#include "configs/status_macros.h"

namespace tpusim::sim {
namespace {

using configs::kMaxAxes;

// The image of each axis, and whether it is reversed.
struct AxisMap {
  std::array<int, kMaxAxes> to = {0, 1, 2};
  std::array<bool, kMaxAxes> reversed = {false, false, false};
};

// Nullopt: not every chip has a place, or neighbours would be torn apart.
std::optional<Turn> Apply(const configs::Topology& topology, const AxisMap& map, int64_t from,
                          int64_t to) {
  const configs::Coordinates origin = topology.At(from), target = topology.At(to);
  Turn turn;
  turn.chips.reserve(static_cast<size_t>(topology.chips()));
  for (int64_t chip = 0; chip < topology.chips(); ++chip) {
    const configs::Coordinates at = topology.At(chip);
    configs::Coordinates image;
    for (int axis = 0; axis < kMaxAxes; ++axis) {
      const int there = map.to[axis];
      const int64_t extent = topology.shape()[there];
      const int64_t moved = at.at[axis] - origin.at[axis];
      int64_t place = target.at[there] + (map.reversed[axis] ? -moved : moved);
      if (topology.wraps(there) || topology.IsTwisted(there))
        place = ((place % extent) + extent) % extent;
      if (place < 0 || place >= extent) return std::nullopt;
      image.at[there] = place;
    }
    turn.chips.push_back(topology.ChipAt(image));
  }
  for (int d = 0; d < configs::kDirections; ++d) {
    const auto direction = static_cast<configs::Direction>(d);
    const int axis = configs::AxisOf(direction);
    turn.directions[d] =
        configs::MakeDirection(map.to[axis], configs::IsPlus(direction) != map.reversed[axis]);
  }
  // Also where an axis closes with a twist.
  for (const configs::Link& link : topology.AllLinks()) {
    const configs::Link image = turn.Of(link);
    if (!topology.HasLink(image.chip, image.direction) ||
        topology.Neighbour(image.chip, image.direction) !=
            turn.chips[topology.Neighbour(link.chip, link.direction)]) {
      return std::nullopt;
    }
  }
  return turn;
}

}  // namespace

std::vector<Turn> TurnsOf(const configs::Topology& topology, int64_t from, int64_t to) {
  TPUSIM_CHECK(topology.slices() == 1, "turns are those of one slice");
  std::vector<Turn> turns;
  AxisMap map;
  do {
    bool fits = true;
    for (int axis = 0; axis < kMaxAxes; ++axis) {
      fits = fits && topology.shape()[axis] == topology.shape()[map.to[axis]] &&
             topology.wraps(axis) == topology.wraps(map.to[axis]) &&
             // Exchanging axes of one chip changes nothing.
             (topology.shape()[axis] > 1 || map.to[axis] == axis);
    }
    if (!fits) continue;
    for (int reversed = 0; reversed < (1 << kMaxAxes); ++reversed) {
      bool new_one = true;
      for (int axis = 0; axis < kMaxAxes; ++axis) {
        map.reversed[axis] = ((reversed >> axis) & 1) != 0;
        // An axis of one chip has no other way round.
        new_one = new_one && !(map.reversed[axis] && topology.shape()[axis] == 1);
      }
      if (!new_one) continue;
      if (std::optional<Turn> turn = Apply(topology, map, from, to)) {
        turns.push_back(*std::move(turn));
      }
    }
  } while (std::next_permutation(map.to.begin(), map.to.end()));
  return turns;
}

}  // namespace tpusim::sim
