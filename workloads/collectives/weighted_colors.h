// Colours of unequal parts, for lanes of unequal speed.
//
// Colours that take the lanes in rotated orders with equal parts load all lanes
// alike only if these are alike. On 4x4x8 the colour that takes the long axis last
// sends 7/2 * 16 = 56 shards over it, another 3/2 * 32 = 48 over a short one; and
// while the few bytes of the first phases pass, most links idle. The link between
// the devices of a chip has work only after everything else.
//
// Here time is cut into slots. A colour is an order of the lanes and a slot for
// each of its phases, later ones later; with more slots than lanes some colours are
// still gathering along their first lane while others are at their last. The time
// of a slot is that of its busiest lane. How much of the data each colour gets is
// the solution of a linear program:
//
//   minimize  sum over slots of t(slot),   t(slot) >= sum over colours of
//             weight * time of the colour's phase in this slot on this lane, each lane
//             sum of weights = 1
//
// which leaves at most slots * lanes + 1 colours. Latency is not part of it.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_WEIGHTED_COLOURS_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_WEIGHTED_COLOURS_H_

#include <cstdint>
#include <vector>

#include "workloads/collectives/collective.h"
#include "workloads/collectives/lane.h"
#include "workloads/collectives/plan.h"

namespace tpusim::collectives {

// Kind, lanes, orders, slots and weights of such a plan; the rest is left to the caller.
Plan WeightedPlan(CollectiveKind kind, const std::vector<Lane>& lanes, int slots);

// Plans worth trying, with fewer slots (less latency) and with more; none where colours of
// equal parts do as well, or where `memory` (of a device; 0: no limit) cannot serve
// all lanes at once and sharing it out would only delay some of them.
std::vector<Plan> WeightedPlans(CollectiveKind kind, const std::vector<Lane>& lanes,
                                BytesPerSecond memory);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_WEIGHTED_COLOURS_H_
