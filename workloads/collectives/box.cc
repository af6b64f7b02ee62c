#include "workloads/collectives/box.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tpusim::collectives {
namespace {

// x, y, z of the chip, which of its devices it is, and its slice.
Position PlaceOf(const configs::Topology& topology, int64_t device) {
  const int64_t chip = device / topology.devices_per_chip();
  const configs::Coordinates c = topology.At(chip);
  return {c.at[0], c.at[1], c.at[2], device % topology.devices_per_chip(), topology.SliceOf(chip)};
}

int64_t LengthOf(const configs::Topology& topology, int axis) {
  if (axis == kSliceAxis) return topology.slices();
  return axis == kCoreAxis ? topology.devices_per_chip() : topology.shape()[axis];
}

// The run that these coordinates (sorted, at least two) form, if any.
std::optional<AxisRun> FindRun(int axis, const std::vector<int64_t>& at, int64_t length,
                               bool wraps) {
  const int64_t n = static_cast<int64_t>(at.size());
  std::vector<int64_t> gaps;  // from each coordinate to the next, the last one round the ring
  for (int64_t i = 0; i < n; ++i) {
    gaps.push_back(i + 1 < n ? at[i + 1] - at[i] : at[0] + length - at[i]);
  }
  const bool even = std::ranges::all_of(gaps, [&](int64_t g) { return g == gaps[0]; });
  if (wraps && even) return AxisRun{axis, at[0], n, gaps[0], true};
  // A line leaves out the widest gap; without wrap-around that of the edges.
  int64_t open = n - 1;
  if (wraps) open = std::ranges::max_element(gaps) - gaps.begin();
  const int64_t stride = gaps[(open + 1) % n];
  for (int64_t i = 0; i < n; ++i) {
    if (i != open && gaps[i] != stride) return std::nullopt;
  }
  return AxisRun{axis, at[(open + 1) % n], n, stride, false};
}

}  // namespace

int64_t Box::members() const {
  int64_t product = 1;
  for (const AxisRun& run : runs) product *= run.n;
  return product;
}

bool Box::SpansCores() const {
  return std::ranges::any_of(runs, [](const AxisRun& run) { return run.axis == kCoreAxis; });
}

bool Box::SpansSlices() const { return !runs.empty() && runs.back().axis == kSliceAxis; }

bool Box::contiguous() const {
  return std::ranges::all_of(
      runs, [](const AxisRun& run) { return run.stride == 1 || run.axis == kSliceAxis; });
}

std::string Box::Extents() const {
  std::string text;
  for (const AxisRun& run : runs) {
    if (run.axis == kSliceAxis) continue;
    text += fmt::format("{}{}", text.empty() ? "" : "x", run.n);
  }
  return text;
}

bool SameForm(const Box& a, const Box& b) {
  return std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(),
                    [](const AxisRun& p, const AxisRun& q) {
                      return p.axis == q.axis && p.n == q.n && p.stride == q.stride &&
                             p.ring == q.ring;
                    });
}

std::optional<Box> FindBox(const configs::Topology& topology, const std::vector<int64_t>& group) {
  std::array<std::vector<bool>, kMaxDimensions> seen;
  for (int axis = 0; axis < kMaxDimensions; ++axis) seen[axis].resize(LengthOf(topology, axis));
  for (const int64_t device : group) {
    const Position at = PlaceOf(topology, device);
    for (int axis = 0; axis < kMaxDimensions; ++axis) seen[axis][at[axis]] = true;
  }
  Box box;
  for (int axis = 0; axis < kMaxDimensions; ++axis) {
    std::vector<int64_t> sorted;
    for (size_t at = 0; at < seen[axis].size(); ++at) {
      if (seen[axis][at]) sorted.push_back(static_cast<int64_t>(at));
    }
    if (sorted.size() < 2) continue;
    // Every slice reaches every other: there are no ends.
    const bool wraps = axis == kSliceAxis || (axis < configs::kMaxAxes && topology.wraps(axis));
    const auto run = FindRun(axis, sorted, LengthOf(topology, axis), wraps);
    if (!run) return std::nullopt;
    box.runs.push_back(*run);
  }
  // Members are distinct, so as many as combinations means one at each.
  if (box.members() != static_cast<int64_t>(group.size())) return std::nullopt;
  return box;
}

std::optional<Box> MovedBox(const configs::Topology& topology, const Box& box,
                            const std::vector<int64_t>& like, const std::vector<int64_t>& group) {
  if (group.size() != like.size()) return std::nullopt;
  Box moved = box;
  const Position from = PlaceOf(topology, like[0]), to = PlaceOf(topology, group[0]);
  std::array<int64_t, kMaxDimensions> by = {}, length = {};
  for (int axis = 0; axis < kMaxDimensions; ++axis) {
    length[axis] = LengthOf(topology, axis);
    by[axis] = to[axis] - from[axis];
  }
  for (AxisRun& run : moved.runs) {
    const int64_t first = run.first + by[run.axis] + length[run.axis];
    // A ring is named after its smallest coordinate.
    run.first = first % (run.ring ? run.stride : length[run.axis]);
    const bool closes =
        run.axis == kSliceAxis || (run.axis < configs::kMaxAxes && topology.wraps(run.axis));
    if (!closes && run.first + (run.n - 1) * run.stride >= length[run.axis]) return std::nullopt;
  }
  for (size_t i = 0; i < group.size(); ++i) {
    const Position was = PlaceOf(topology, like[i]), is = PlaceOf(topology, group[i]);
    for (int axis = 0; axis < kMaxDimensions; ++axis) {
      if ((was[axis] + by[axis] + length[axis]) % length[axis] != is[axis]) return std::nullopt;
    }
  }
  return moved;
}

Position PositionIn(const configs::Topology& topology, const Box& box, int64_t device) {
  const Position place = PlaceOf(topology, device);
  Position position = {};
  for (size_t i = 0; i < box.runs.size(); ++i) {
    const AxisRun& run = box.runs[i];
    const int64_t length = LengthOf(topology, run.axis);
    const int64_t from_first = place[run.axis] - run.first;
    position[i] = from_first < 0 ? from_first + length : from_first;
    if (run.stride > 1) position[i] /= run.stride;
  }
  return position;
}

std::vector<std::vector<int64_t>> GroupsAlong(const configs::Topology& topology,
                                              const std::vector<int>& axes) {
  const int64_t per_chip = topology.devices_per_chip();
  std::map<Position, std::vector<int64_t>> groups;
  for (int64_t device = 0; device < topology.devices(); ++device) {
    const configs::Coordinates at = topology.At(device / per_chip);
    Position rest = {at.at[0], at.at[1], at.at[2], device % per_chip,
                     topology.SliceOf(device / per_chip)};
    for (const int axis : axes) rest[axis] = 0;
    groups[rest].push_back(device);
  }
  std::vector<std::vector<int64_t>> result;
  for (auto& [rest, group] : groups) result.push_back(std::move(group));
  return result;
}

}  // namespace tpusim::collectives
