#include "workloads/lowering/collectives/box.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tpusim::lowering {
namespace {

// The run that these coordinates (sorted, at least two) form, if any.
std::optional<AxisRun> FindRun(int axis, const std::vector<int64_t>& at, int64_t length,
                               bool wraps) {
  const int64_t n = static_cast<int64_t>(at.size());
  std::vector<int64_t> gaps;  // from each coordinate to the next, the last one round the ring
  for (int64_t i = 0; i < n; ++i) {
    gaps.push_back(i + 1 < n ? at[i + 1] - at[i] : at[0] + length - at[i]);
  }
  const bool even = std::all_of(gaps.begin(), gaps.end(), [&](int64_t g) { return g == gaps[0]; });
  if (wraps && even) return AxisRun{axis, at[0], n, gaps[0], true};
  // A line leaves out the widest gap; without wrap-around that of the edges.
  int64_t open = n - 1;
  if (wraps) open = std::max_element(gaps.begin(), gaps.end()) - gaps.begin();
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

bool Box::contiguous() const {
  return std::all_of(runs.begin(), runs.end(), [](const AxisRun& run) { return run.stride == 1; });
}

std::string Box::Extents() const {
  std::string text;
  for (const AxisRun& run : runs) text += fmt::format("{}{}", text.empty() ? "" : "x", run.n);
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
  std::array<std::set<int64_t>, configs::kMaxAxes> coordinates;
  for (const int64_t device : group) {
    const configs::Coordinates c = topology.At(device);
    for (int axis = 0; axis < configs::kMaxAxes; ++axis) coordinates[axis].insert(c.at[axis]);
  }
  Box box;
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    if (coordinates[axis].size() < 2) continue;
    const std::vector<int64_t> sorted(coordinates[axis].begin(), coordinates[axis].end());
    const auto run = FindRun(axis, sorted, topology.shape()[axis], topology.wraps(axis));
    if (!run) return std::nullopt;
    box.runs.push_back(*run);
  }
  // Members are distinct, so as many as combinations means one at each.
  if (box.members() != static_cast<int64_t>(group.size())) return std::nullopt;
  return box;
}

Position PositionIn(const configs::Topology& topology, const Box& box, int64_t device) {
  const configs::Coordinates c = topology.At(device);
  Position position = {};
  for (size_t i = 0; i < box.runs.size(); ++i) {
    const AxisRun& run = box.runs[i];
    const int64_t length = topology.shape()[run.axis];
    position[i] = (c.at[run.axis] - run.first + length) % length / run.stride;
  }
  return position;
}

}  // namespace tpusim::lowering
