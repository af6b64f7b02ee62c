// A dimension of a group: n positions that exchange data, a ring or a line of the torus.
//
//   ring       neighbours are linked, and so are the last and the first: a
//              wrapped axis that the group spans, a Hamiltonian cycle, a ring
//              through scattered chips
//   line       neighbours are linked, the ends are not
//   scattered  every position reaches every other directly; only for all-to-all
//   switched   the same over the data-centre network, between slices; `rate` is what
//              one device may send to all the others together
//
// What is gathered goes round a ring both ways at once, half of it each, or (one
// color of several) all of it one way.
//
// A group is a box of dimensions; a dimension knows how fast it is, not where it lies.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_DIMENSION_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_DIMENSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/units.h"
#include "models/timing/collective_timing.h"
#include "workloads/collectives/steps.h"

namespace tpusim::collectives {

// The way that the data of a color goes round rings; lines have both anyway.
enum class Way { kBoth, kUp, kDown };
constexpr int64_t SignOf(Way way) { return way == Way::kDown ? -1 : 1; }

struct Dimension {
  enum class Shape { kRing, kLine, kScattered, kSwitched };
  Shape shape = Shape::kLine;
  int64_t n = 1;
  // Effective rate between neighbours, all members of all groups sending at
  // once; links of the longest step. kScattered: of all routes together, where
  // `busiest` is the number of half blocks that cross the busiest link.
  BytesPerSecond rate;
  int64_t hops = 1;
  int64_t busiest = 0;
  Picoseconds dcn_latency{0};  // of a step that leaves the slice, instead of hops
  // kScattered, where positions are those of a box: its extents, first coordinate
  // fastest. A displacement is then one in the box, the same for all members.
  std::vector<int64_t> extents = {};

  // The dimension's place: an axis of the torus and the distance between positions, or (axis < 0) a
  // table of routes of the algorithm.
  int axis = -1;
  int64_t stride = 1;
  // On a twisted torus an axis closes with a shift along others (bit masks of dimensions):
  // a ring once all of those have been gathered, as then the shift makes no
  // difference, and a line before.
  uint32_t closes_after = 0;
  bool closed = true;  // kSwitched: all slices, evenly spaced, so that none is first

  // Position that a displacement leads to; both are numbers of positions.
  int64_t Shifted(int64_t position, int64_t delta) const;

  // An even ring sends the shard of the antipode as two halves, one each way.
  int halves() const {
    return shape == Shape::kScattered || (shape == Shape::kRing && n % 2 == 0) ? 2 : 1;
  }
  // Whether all positions do the same.
  bool Symmetric() const {
    return shape == Shape::kSwitched ? closed : shape != Shape::kLine && closes_after == 0;
  }
};

// Closed form of one dimension, without launch. `shard`, `block` as in
// models/timing/collective_timing.h.
Picoseconds AllGatherTime(const Dimension& dimension, Bytes shard, Picoseconds hop_latency,
                          Way way = Way::kBoth);
Picoseconds AllToAllTime(const Dimension& dimension, Bytes block, Picoseconds hop_latency);
// Times of single steps, in their order.
std::vector<Picoseconds> AllGatherStepTimes(const Dimension& dimension, Bytes shard,
                                            Picoseconds hop_latency, Way way);
std::vector<Picoseconds> AllToAllStepTimes(const Dimension& dimension, Bytes block,
                                           Picoseconds hop_latency);

// Returns the steps of the device at position `base.origin[dimension]` that gather along the
// dimension what every position holds; `base` is what this device holds at the start.
DeviceSteps AllGatherSteps(const Dimension& dimension, int index, const Chunks& base,
                           Way way = Way::kBoth);
// Returns its steps of an all-to-all; `base` holds for every destination of the dimension.
DeviceSteps AllToAllSteps(const Dimension& dimension, int index, const Chunks& base);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_DIMENSION_H_
