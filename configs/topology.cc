#include "configs/topology.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

using Shape = std::array<int64_t, kMaxAxes>;

int64_t FloorMod(int64_t value, int64_t modulus) { return ((value % modulus) + modulus) % modulus; }

int64_t FloorDiv(int64_t value, int64_t divisor) {
  return (value - FloorMod(value, divisor)) / divisor;
}

// Signed steps from `from` to `to` along one axis without twist.
int64_t StepsAlong(int64_t length, bool wrap, int64_t from, int64_t to, bool tie_plus) {
  if (!wrap) return to - from;
  const int64_t up = FloorMod(to - from, length);
  const int64_t down = length - up;
  if (up == down) return tie_plus ? up : -down;
  return up < down ? up : -down;
}

int64_t Hops(const Shape& steps) {
  return std::abs(steps[0]) + std::abs(steps[1]) + std::abs(steps[2]);
}

// The box of chips of one host: as configured, turned in x and y if only that
// divides the slice, the whole slice if it is no larger than a host.
Shape HostBox(const Config& config) {
  const Shape& slice = config.topology.shape();
  const HostParams& host = config.chip.host;
  if (config.topology.ChipsPerSlice() <= host.chips_x * host.chips_y * host.chips_z) return slice;
  const auto divides = [&](const Shape& box) {
    return slice[0] % box[0] == 0 && slice[1] % box[1] == 0 && slice[2] % box[2] == 0;
  };
  const Shape box = {host.chips_x, host.chips_y, host.chips_z};
  const Shape turned = {host.chips_y, host.chips_x, host.chips_z};
  return !divides(box) && divides(turned) ? turned : box;
}

}  // namespace

std::string_view DirectionName(Direction d) {
  static constexpr std::string_view kNames[kDirections] = {"x+", "x-", "y+", "y-", "z+", "z-"};
  return kNames[static_cast<int>(d)];
}

std::array<bool, kMaxAxes> WrapsOf(const SliceRules& rules,
                                   const std::array<int64_t, kMaxAxes>& shape) {
  std::array<bool, kMaxAxes> wraps = {false, false, false};
  switch (rules.wrap) {
    case WrapRule::kNever:
      break;
    case WrapRule::kFullPod:
      wraps.fill(shape == rules.max);
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

Twist TwistOf(const std::array<int64_t, kMaxAxes>& shape) {
  Twist twist = {};
  const int64_t n = shape[0];
  if (shape == Shape{n, n, 2 * n}) {
    twist[0] = {0, 0, n};
    twist[1] = {0, 0, n};
  } else if (shape == Shape{n, 2 * n, 2 * n}) {
    twist[0] = {0, n, n};
  }
  return twist;
}

int64_t HostOf(const Config& config, int64_t chip) {
  const Shape box = HostBox(config);
  const Shape& slice = config.topology.shape();
  const Coordinates c = config.topology.At(chip);
  const auto hosts = [&](int axis) { return CeilDiv(slice[axis], box[axis]); };
  const int64_t host =
      c.at[0] / box[0] + hosts(0) * (c.at[1] / box[1] + hosts(1) * (c.at[2] / box[2]));
  return config.topology.SliceOf(chip) * hosts(0) * hosts(1) * hosts(2) + host;
}

int64_t HostCount(const Config& config) { return HostOf(config, config.topology.chips() - 1) + 1; }

Topology::Topology(std::array<int64_t, kMaxAxes> shape, std::array<bool, kMaxAxes> wrap,
                   int64_t devices_per_chip, const Twist& twist, int64_t slices)
    : shape_(shape),
      wrap_(wrap),
      twist_(twist),
      devices_per_chip_(devices_per_chip),
      slices_(slices) {
  TPUSIM_CHECK(slices_ >= 1, "a pod has at least one slice");
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    TPUSIM_CHECK(shape_[axis] >= 1, "an axis of a slice has at least one chip");
    // A ring of one chip would be a cable from the chip to itself.
    if (shape_[axis] == 1) wrap_[axis] = false;
    TPUSIM_CHECK(!IsTwisted(axis) || wrap_[axis], "only an axis that closes can be twisted");
    for (int other = 0; other < kMaxAxes; ++other) {
      TPUSIM_CHECK(twist_[axis][other] == 0 || (other != axis && wraps(other)),
                   "a twist shifts along rings only");
    }
  }
  TPUSIM_CHECK(devices_per_chip_ >= 1, "a chip has at least one device");
}

int64_t Topology::ChipAt(const Coordinates& c, int64_t slice) const {
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    TPUSIM_CHECK(c.at[axis] >= 0 && c.at[axis] < shape_[axis], "coordinates outside the slice");
  }
  return slice * ChipsPerSlice() + c.at[0] + shape_[0] * (c.at[1] + shape_[1] * c.at[2]);
}

Coordinates Topology::At(int64_t chip) const {
  TPUSIM_CHECK(chip >= 0 && chip < chips(), "chip id outside the slice");
  // Asked for every device of a pod, and divisions are what it costs.
  const int64_t in_slice = slices_ == 1 ? chip : chip % ChipsPerSlice();
  const int64_t row = in_slice / shape_[0];
  const int64_t plane = shape_[2] == 1 ? 0 : row / shape_[1];
  return {{in_slice - row * shape_[0], row - plane * shape_[1], plane}};
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
  // One step inside the slice, or once round an axis that is not twisted.
  const int64_t stride = axis == 0 ? 1 : axis == 1 ? shape_[0] : shape_[0] * shape_[1];
  const int64_t at = chip / stride % shape_[axis];
  const bool over = IsPlus(d) ? at + 1 == shape_[axis] : at == 0;
  if (!over || !twisted()) {
    const int64_t steps = over ? 1 - shape_[axis] : 1;
    return chip + (IsPlus(d) ? steps : -steps) * stride;
  }
  Coordinates c = At(chip);
  c.at[axis] += IsPlus(d) ? 1 : -1;
  const int64_t rounds = FloorDiv(c.at[axis], shape_[axis]);  // 1, 0 or -1
  for (int other = 0; other < kMaxAxes; ++other) {
    c.at[other] = FloorMod(c.at[other] + rounds * twist_[axis][other], shape_[other]);
  }
  return ChipAt(c, SliceOf(chip));
}

std::vector<Link> Topology::AllLinks() const {
  std::vector<Link> links;
  links.reserve(static_cast<size_t>(chips() * kDirections));
  for (int64_t chip = 0; chip < chips(); ++chip) {
    for (int d = 0; d < kDirections; ++d) {
      const Direction direction = static_cast<Direction>(d);
      if (HasLink(chip, direction)) links.push_back({chip, direction});
    }
  }
  return links;
}

int64_t Topology::Distance(int64_t from, int64_t to) const {
  if (SliceOf(from) != SliceOf(to)) return shape_[0] + shape_[1] + shape_[2];
  return Hops(Steps(from, to, RouteTie::kPlus));
}

// Without a twist every axis goes its shorter way. A twisted axis may go either way, or once round
// for the sake of the shift; the axes it shifts then cover what is left. Which ways there are, and
// so the choice among ties, depends on the displacement only, not on where the route starts.
Shape Topology::Steps(int64_t from, int64_t to, RouteTie tie) const {
  const Coordinates a = At(from);
  const Coordinates b = At(to);
  const bool plus = tie == RouteTie::kPlus;
  if (!twisted()) {
    Shape steps;
    for (int axis = 0; axis < kMaxAxes; ++axis) {
      steps[axis] = StepsAlong(shape_[axis], wrap_[axis], a.at[axis], b.at[axis], plus);
    }
    return steps;
  }
  std::array<std::vector<int64_t>, kMaxAxes> ways;
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    ways[axis] = {0};
    if (!IsTwisted(axis)) continue;
    const int64_t up = FloorMod(b.at[axis] - a.at[axis], shape_[axis]);
    ways[axis] = {up, up - shape_[axis]};
    if (up == 0) ways[axis].push_back(shape_[axis]);
  }
  std::optional<Shape> best;
  for (int64_t x : ways[0]) {
    for (int64_t y : ways[1]) {
      for (int64_t z : ways[2]) {
        Shape steps = {x, y, z};
        Shape at = a.at;
        for (int axis = 0; axis < kMaxAxes; ++axis) {
          const int64_t rounds = FloorDiv(a.at[axis] + steps[axis], shape_[axis]);
          for (int other = 0; other < kMaxAxes; ++other) {
            at[other] = FloorMod(at[other] + rounds * twist_[axis][other], shape_[other]);
          }
        }
        for (int axis = 0; axis < kMaxAxes; ++axis) {
          if (IsTwisted(axis)) continue;
          steps[axis] = StepsAlong(shape_[axis], wrap_[axis], at[axis], b.at[axis], plus);
        }
        const bool better = !best || Hops(steps) < Hops(*best) ||
                            (Hops(steps) == Hops(*best) && (plus ? steps > *best : steps < *best));
        if (better) best = steps;
      }
    }
  }
  return *best;
}

std::vector<Link> Topology::Route(int64_t from, int64_t to, RouteTie tie) const {
  if (SliceOf(from) != SliceOf(to)) return {};
  const Shape steps = Steps(from, to, tie);
  std::vector<Link> route;
  int64_t chip = from;
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const Direction direction = MakeDirection(axis, steps[axis] > 0);
    for (int64_t i = 0; i < std::abs(steps[axis]); ++i) {
      route.push_back({chip, direction});
      chip = Neighbour(chip, direction);
    }
  }
  TPUSIM_CHECK(chip == to, "a route must end where it leads");
  return route;
}

}  // namespace tpusim::configs
