// The slice: which chips there are, how they are wired, and which chip runs
// which partition.
//
// A slice is a box of X x Y (x Z) chips. Neighbours along an axis share one
// link per direction; an axis may close into a ring (wrap). A directed link is
// named by the chip that it leaves and its direction: chip 3's `x+`. Chip ids
// run x minor: id = x + X * (y + Y * z).
//
// Routes are dimension ordered (x, then y, then z), each axis the shorter way
// round; the two ways of an even ring's antipode tie, and the tie is answered
// by `RouteTie` of the caller, never by chip id, so that symmetric chips stay
// symmetric.
#ifndef TPUSIM_CONFIGS_TOPOLOGY_H_
#define TPUSIM_CONFIGS_TOPOLOGY_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/chip.h"

namespace tpusim::configs {

inline constexpr int kMaxAxes = 3;

struct Coordinates {
  std::array<int64_t, kMaxAxes> at = {0, 0, 0};
  auto operator<=>(const Coordinates&) const = default;
};

enum class Direction : int { kXPlus, kXMinus, kYPlus, kYMinus, kZPlus, kZMinus };
inline constexpr int kDirections = 6;
std::string_view DirectionName(Direction d);  // "x+"
constexpr int AxisOf(Direction d) { return static_cast<int>(d) / 2; }
constexpr bool IsPlus(Direction d) { return static_cast<int>(d) % 2 == 0; }
constexpr Direction MakeDirection(int axis, bool plus) {
  return static_cast<Direction>(2 * axis + (plus ? 0 : 1));
}

// A directed link: leaves `chip` towards `direction`.
struct Link {
  int64_t chip = 0;
  Direction direction = Direction::kXPlus;
  auto operator<=>(const Link&) const = default;
};

class Topology {
 public:
  Topology() = default;
  // `wrap[a]` says whether axis a closes into a ring.
  Topology(std::array<int64_t, kMaxAxes> shape, std::array<bool, kMaxAxes> wrap,
           int64_t devices_per_chip);

  int64_t chips() const { return shape_[0] * shape_[1] * shape_[2]; }
  int64_t devices() const { return chips() * devices_per_chip_; }
  int64_t devices_per_chip() const { return devices_per_chip_; }
  const std::array<int64_t, kMaxAxes>& shape() const { return shape_; }
  bool wraps(int axis) const { return wrap_[axis]; }

  int64_t ChipAt(const Coordinates& c) const;
  Coordinates At(int64_t chip) const;
  // False at the edge of an unwrapped axis and on axes of length 1. On a ring
  // of 2 both directions lead to the same chip over different links.
  bool HasLink(int64_t chip, Direction d) const;
  int64_t Neighbour(int64_t chip, Direction d) const;  // HasLink must hold
  std::vector<Link> AllLinks() const;                  // chip major, direction order

  // Fewest hops from one chip to another.
  int64_t Distance(int64_t from, int64_t to) const;
  enum class RouteTie { kPlus, kMinus };
  // Links crossed, in order. Empty when from == to.
  std::vector<Link> Route(int64_t from, int64_t to, RouteTie tie = RouteTie::kPlus) const;

 private:
  std::array<int64_t, kMaxAxes> shape_ = {1, 1, 1};
  std::array<bool, kMaxAxes> wrap_ = {false, false, false};
  int64_t devices_per_chip_ = 1;
};

// One --set (or "set" of a configuration file) that was applied.
struct AppliedOverride {
  std::string path;   // "chip.hbm.bytes_per_second"
  double before = 0;  // both in the unit of the parameter
  double after = 0;
};

// Which axes of a slice of this shape close into rings, by the chip's rule.
std::array<bool, kMaxAxes> WrapsOf(WrapRule rule, const std::array<int64_t, kMaxAxes>& shape);

// A parsed --config: chip parameters, slice, and where everything came from.
struct Config {
  std::string name;  // "v5e-4x2"
  ChipParams chip;
  Topology topology;
  std::vector<AppliedOverride> overrides;  // in the order of application
  std::vector<std::string> warnings;

  int64_t devices() const { return topology.devices(); }
};

// The device that JAX's make_mesh would put at each position of a logical mesh
// of this shape on this slice: result[partition] = device id. Device id =
// chip * devices_per_chip + core. `rule` receives a sentence that names the
// rule used, for the summary. Error: more partitions than devices.
absl::StatusOr<std::vector<int64_t>> DeviceOrder(const Config& config,
                                                 const std::vector<int64_t>& mesh_shape,
                                                 std::string* rule);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_TOPOLOGY_H_
