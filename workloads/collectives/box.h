// Recognises groups that lie in the torus like a box: along each axis a run of
// evenly spaced coordinates, and a member at every combination of them. On chips
// of several devices the number of the device on its chip is a coordinate too:
// the fourth axis, kCoreAxis, a line. Where there are several slices the number of
// the slice is the fifth, kSliceAxis.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_BOX_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_BOX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/topology.h"
#include "workloads/collectives/steps.h"

namespace tpusim::collectives {

// The coordinates of a group along one axis: first, first + stride, ... (modulo
// the length of the axis). A ring if they go round a wrapped axis evenly.
struct AxisRun {
  int axis = 0;
  int64_t first = 0;
  int64_t n = 1;
  int64_t stride = 1;
  bool ring = false;
};

struct Box {
  std::vector<AxisRun> runs;  // axes along which the group extends, in their order

  int64_t members() const;
  bool contiguous() const;  // all strides inside a slice are 1
  bool SpansCores() const;  // some chips have several members
  bool SpansSlices() const;
  std::string Extents() const;  // "4x2", of one slice
};

// Boxes that differ only in where they start take the same part.
bool SameForm(const Box& a, const Box& b);

std::optional<Box> FindBox(const configs::Topology& topology, const std::vector<int64_t>& group);
// The box of `group` if it is that of `like` moved elsewhere; both list their members
// in the same order. A shortcut: FindBox finds the same.
std::optional<Box> MovedBox(const configs::Topology& topology, const Box& box,
                            const std::vector<int64_t>& like, const std::vector<int64_t>& group);

// Coordinate of a member along each run.
Position PositionIn(const configs::Topology& topology, const Box& box, int64_t device);

// One group per line (plane, cube) of the slice along `axes`, kCoreAxis among them if
// wanted; all devices are in one.
std::vector<std::vector<int64_t>> GroupsAlong(const configs::Topology& topology,
                                              const std::vector<int>& axes);

// The chips of a contiguous box as a cycle of neighbours, as positions in the
// box; empty if there is none (an odd number of chips, a single run, several
// members on a chip, several slices). Among
// 4x2: 00 10 20 30 31 21 11 01.
std::vector<Position> HamiltonianCycle(const Box& box);

// A closed tour through the members with few hops in total: from the first
// always on to the nearest (the one listed first among equals), then improved by
// reversing stretches (2-opt) while groups are small. Deterministic.
std::vector<int64_t> MinimumHopRing(const configs::Topology& topology,
                                    const std::vector<int64_t>& group);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_BOX_H_
