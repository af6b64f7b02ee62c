// A collective laid out on lanes, and what follows from it: the steps of every
// member, the bytes of every move, and the closed form of the whole.
//
// Over several lanes an all-gather goes lane by lane, each lane carrying what the
// earlier ones brought. With k colours the data is cut into k parts that take
// the lanes in rotated orders, so that every lane carries a k-th at any time; with
// twice as many, half of them go round the rings one way and half the other. Parts may
// have weights, and phases slots of time (slots.h, weighted_colours.h). A
// reduce-scatter is the mirror image, an all-reduce one after the other.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_PLAN_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/chip.h"
#include "configs/units.h"
#include "workloads/collectives/collective.h"
#include "workloads/collectives/lane.h"

namespace tpusim::collectives {

inline constexpr int64_t kWholeWeight = 1 << 16;

struct Plan {
  CollectiveKind kind = CollectiveKind::kAllGather;
  // All-reduce as an all-gather of whole operands that everybody adds up: half
  // the hops, more bytes.
  bool single_phase = false;
  std::vector<Lane> lanes;
  std::vector<std::vector<int>> orders;  // of the lanes, per colour, as an all-gather takes them
  std::vector<Way> ways;                 // per colour; empty: kBoth for all
  // Per colour and phase, ascending in a colour; empty: the number of the phase.
  std::vector<std::vector<int>> slots;
  // Of the data, per colour, in kWholeWeight-ths; empty: equal parts.
  std::vector<int64_t> weights;
  Picoseconds hop_latency;
  BytesPerSecond memory;  // of a device, that all transfers share; 0: no limit
  // Copies on each device beside: the operand amid zeros before an all-reduce that
  // stands for an all-gather, the part of the result after one that stands for a
  // reduce-scatter.
  Bytes zeros_before, slice_after;
  // Unit of the transfers, per colour: one half (if shards are halved) of its part of
  // one shard, rounded up to whole elements so that all members do the same.
  std::vector<Bytes> atoms;
  int halves = 1;

  int64_t members() const;
  // The lane that the colour takes in this phase, as it is then.
  Lane LaneAt(size_t colour, size_t phase) const;
  Way WayOf(size_t colour) const { return ways.empty() ? Way::kBoth : ways[colour]; }
};

// Fills in `atoms` and `halves`, given lanes, orders and weights.
void SetAtoms(const CollectiveRequest& request, Plan& plan);

DeviceSteps StepsAt(const Plan& plan, const Position& position);
// `atoms`, if not empty: the atom for each destination, positions in row-major
// order, of an all-to-all with parts that differ.
Bytes BytesOf(const Plan& plan, const Move& move, const std::vector<Bytes>& atoms);
// Number of a position in that order.
int64_t NumberOf(const Plan& plan, const Position& position);
// Atoms for parts in the order of `positions`.
std::vector<Bytes> AtomsFor(const CollectiveRequest& request, const Plan& plan,
                            const std::vector<Position>& positions);
// Closed form with launch, without the copies.
Picoseconds TimeOf(const Plan& plan, const configs::IciParams& ici);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_PLAN_H_
