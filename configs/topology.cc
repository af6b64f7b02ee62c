#include "configs/topology.h"

#include <algorithm>

#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

// Steps from `from` to `to` along one axis and their direction.
struct AxisSteps {
  int64_t count = 0;
  bool plus = true;
};

AxisSteps StepsAlong(int64_t length, bool wrap, int64_t from, int64_t to, bool tie_plus) {
  if (from == to) return {};
  if (!wrap) return {to > from ? to - from : from - to, to > from};
  const int64_t up = (to - from + length) % length;
  const int64_t down = length - up;
  if (up == down) return {up, tie_plus};
  return up < down ? AxisSteps{up, true} : AxisSteps{down, false};
}

}  // namespace

std::string_view DirectionName(Direction d) {
  static constexpr std::string_view kNames[kDirections] = {"x+", "x-", "y+", "y-", "z+", "z-"};
  return kNames[static_cast<int>(d)];
}

std::array<bool, kMaxAxes> WrapsOf(WrapRule rule, const std::array<int64_t, kMaxAxes>& shape) {
  std::array<bool, kMaxAxes> wraps = {false, false, false};
  switch (rule) {
    case WrapRule::kNever:
      break;
    case WrapRule::kAxisLength16:
      for (int axis = 0; axis < kMaxAxes; ++axis) wraps[axis] = shape[axis] == 16;
      break;
    case WrapRule::kWholeCubes4: {
      const bool cubes =
          std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n % 4 == 0; });
      wraps.fill(cubes);
      break;
    }
  }
  return wraps;
}

Topology::Topology(std::array<int64_t, kMaxAxes> shape, std::array<bool, kMaxAxes> wrap,
                   int64_t devices_per_chip)
    : shape_(shape), wrap_(wrap), devices_per_chip_(devices_per_chip) {
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    TPUSIM_CHECK(shape_[axis] >= 1, "an axis of a slice has at least one chip");
    // A ring of one chip would be a cable from the chip to itself.
    if (shape_[axis] == 1) wrap_[axis] = false;
  }
  TPUSIM_CHECK(devices_per_chip_ >= 1, "a chip has at least one device");
}

int64_t Topology::ChipAt(const Coordinates& c) const {
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    TPUSIM_CHECK(c.at[axis] >= 0 && c.at[axis] < shape_[axis], "coordinates outside the slice");
  }
  return c.at[0] + shape_[0] * (c.at[1] + shape_[1] * c.at[2]);
}

Coordinates Topology::At(int64_t chip) const {
  TPUSIM_CHECK(chip >= 0 && chip < chips(), "chip id outside the slice");
  return {{chip % shape_[0], chip / shape_[0] % shape_[1], chip / (shape_[0] * shape_[1])}};
}

bool Topology::HasLink(int64_t chip, Direction d) const {
  const int axis = AxisOf(d);
  if (shape_[axis] == 1) return false;
  if (wrap_[axis]) return true;
  const int64_t at = At(chip).at[axis];
  return IsPlus(d) ? at + 1 < shape_[axis] : at > 0;
}

int64_t Topology::Neighbour(int64_t chip, Direction d) const {
  TPUSIM_CHECK(HasLink(chip, d), "no link leaves the chip in this direction");
  const int axis = AxisOf(d);
  Coordinates c = At(chip);
  c.at[axis] = (c.at[axis] + (IsPlus(d) ? 1 : shape_[axis] - 1)) % shape_[axis];
  return ChipAt(c);
}

std::vector<Link> Topology::AllLinks() const {
  std::vector<Link> links;
  for (int64_t chip = 0; chip < chips(); ++chip) {
    for (int d = 0; d < kDirections; ++d) {
      const Direction direction = static_cast<Direction>(d);
      if (HasLink(chip, direction)) links.push_back({chip, direction});
    }
  }
  return links;
}

int64_t Topology::Distance(int64_t from, int64_t to) const {
  const Coordinates a = At(from);
  const Coordinates b = At(to);
  int64_t hops = 0;
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    hops += StepsAlong(shape_[axis], wrap_[axis], a.at[axis], b.at[axis], true).count;
  }
  return hops;
}

std::vector<Link> Topology::Route(int64_t from, int64_t to, RouteTie tie) const {
  const Coordinates a = At(from);
  const Coordinates b = At(to);
  std::vector<Link> route;
  int64_t chip = from;
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const AxisSteps steps =
        StepsAlong(shape_[axis], wrap_[axis], a.at[axis], b.at[axis], tie == RouteTie::kPlus);
    const Direction direction = MakeDirection(axis, steps.plus);
    for (int64_t i = 0; i < steps.count; ++i) {
      route.push_back({chip, direction});
      chip = Neighbour(chip, direction);
    }
  }
  TPUSIM_CHECK(chip == to, "a route must end where it leads");
  return route;
}

}  // namespace tpusim::configs
