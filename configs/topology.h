// The slice: which chips there are, how they are wired, and which chip runs which partition.
//
// A slice is a box of X x Y (x Z) chips. Neighbours along an axis share one link per direction; an
// axis may close into a ring (wrap). A directed link is named by the chip that it leaves and its
// direction: chip 3's `x+`. Chip ids run x minor: id = x + X * (y + Y * z).
//
// Several equal slices joined by the data-centre network make one topology, too:
// the chips of slice s follow those of slice s-1, coordinates are those inside a
// slice, and no link leads from one slice to another.
//
// A twisted torus closes its short axes with a shift: leaving chip (A-1, y, z)
// of an A x A x 2A slice in x+ leads to (0, y, z + A). Every chip keeps its six
// links and all chips look alike, but walking along a twisted axis comes back to
// the start only after more than one round, so that axis is no ring.
//
// Routes are dimension ordered (x, then y, then z), each axis the shorter way round; the two ways
// of an even ring's antipode tie, and the tie is answered by `RouteTie` of the caller, never by
// chip id, so that symmetric chips stay symmetric.
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

// twist[a][b]: how far axis b moves when a route leaves axis a at its upper end.
using Twist = std::array<std::array<int64_t, kMaxAxes>, kMaxAxes>;

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

// Connections of the chips along an axis of a slice; the rate that a link reaches depends on it.
enum class AxisLinks {
  kRing,  // both ends are connected, also those of a twisted axis
  kLine,  // not so: data for the far end is forwarded
  kPair,  // two chips: every transfer is one between neighbours
};

class Topology {
 public:
  Topology() = default;
  // `wrap[a]` says whether axis a closes; only axes that do may be twisted.
  Topology(std::array<int64_t, kMaxAxes> shape, std::array<bool, kMaxAxes> wrap,
           int64_t devices_per_chip, const Twist& twist = {}, int64_t slices = 1);

  int64_t slices() const { return slices_; }
  int64_t chips() const { return slices_ * ChipsPerSlice(); }
  int64_t ChipsPerSlice() const { return shape_[0] * shape_[1] * shape_[2]; }
  int64_t SliceOf(int64_t chip) const { return chip / ChipsPerSlice(); }
  int64_t devices() const { return chips() * devices_per_chip_; }
  int64_t devices_per_chip() const { return devices_per_chip_; }
  // Returns the shape of one slice.
  const std::array<int64_t, kMaxAxes>& shape() const { return shape_; }
  // Returns whether the chips along the axis form a ring. A twisted axis has links at its ends,
  // too, but they lead elsewhere.
  bool wraps(int axis) const { return wrap_[axis] && !IsTwisted(axis); }
  bool IsTwisted(int axis) const { return twist_[axis] != Twist::value_type{}; }
  AxisLinks LinksAlong(int axis) const {
    if (wraps(axis) || IsTwisted(axis)) return AxisLinks::kRing;
    return shape_[axis] == 2 ? AxisLinks::kPair : AxisLinks::kLine;
  }
  bool twisted() const { return twist_ != Twist{}; }

  int64_t ChipAt(const Coordinates& c, int64_t slice = 0) const;
  Coordinates At(int64_t chip) const;  // in its slice
  // Returns whether there is a link: not at the edge of an unwrapped axis and on axes of length 1.
  // On a ring of 2 both directions lead to the same chip over different links.
  bool HasLink(int64_t chip, Direction d) const;
  int64_t Neighbour(int64_t chip, Direction d) const;  // HasLink must hold
  std::vector<Link> AllLinks() const;                  // chip major, direction order

  // Fewest hops from one chip to another; from slice to slice more than any way inside one.
  int64_t Distance(int64_t from, int64_t to) const;
  enum class RouteTie { kPlus, kMinus };
  // Links crossed, in order. Empty when from == to, and from slice to slice.
  std::vector<Link> Route(int64_t from, int64_t to, RouteTie tie = RouteTie::kPlus) const;

 private:
  // Signed number of links along each axis of the route, + upwards.
  std::array<int64_t, kMaxAxes> Steps(int64_t from, int64_t to, RouteTie tie) const;

  std::array<int64_t, kMaxAxes> shape_ = {1, 1, 1};
  std::array<bool, kMaxAxes> wrap_ = {false, false, false};
  Twist twist_ = {};
  int64_t devices_per_chip_ = 1;
  int64_t slices_ = 1;
};

// One --set (or "set" of a configuration file) that was applied.
struct AppliedOverride {
  std::string path;   // "chip.hbm.bytes_per_second"
  double before = 0;  // both in the unit of the parameter
  double after = 0;
};

// Returns which axes of a slice of this shape close, by the chip's rule.
std::array<bool, kMaxAxes> WrapsOf(const SliceRules& rules,
                                   const std::array<int64_t, kMaxAxes>& shape);

// The twist of a cube slice n x n x 2n (both short axes shift the long one by n)
// or n x 2n x 2n (the short axis shifts both long ones by n); all zero for any
// other shape, which has no twisted form.
Twist TwistOf(const std::array<int64_t, kMaxAxes>& shape);

// A parsed --config: chip parameters, slice, and where everything came from.
struct Config {
  std::string name;  // "v5e-4x2"
  ChipParams chip;
  Topology topology;
  std::vector<AppliedOverride> overrides;  // in the order of application
  std::vector<std::string> warnings;

  int64_t devices() const { return topology.devices(); }
};

// Returns the host of a chip, counted slice by slice and x minor over the slice. Chips of a host
// form a box (turned if it only fits so); a slice smaller than a host has one host to itself.
int64_t HostOf(const Config& config, int64_t chip);
int64_t HostCount(const Config& config);

// The device that JAX's make_mesh would put at each position of a logical mesh of this shape on
// this slice: result[partition] = device id. Device id = chip * devices_per_chip + core. `jax` is
// the version of JAX that makes the mesh, "" for the newest. `rule` receives a sentence that names
// the rule used, for the summary. Several slices divide the leading mesh axes, as in
// create_hybrid_device_mesh. Error: more partitions than devices; slices that do not divide the
// leading axes.
absl::StatusOr<std::vector<int64_t>> DeviceOrder(const Config& config,
                                                 const std::vector<int64_t>& mesh_shape,
                                                 std::string_view jax, std::string* rule);

// Device by device the number that JAX gives it: slice by slice and there host by host, the
// devices of a chip side by side.
std::vector<int64_t> JaxDeviceNumbers(const Config& config);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_TOPOLOGY_H_
