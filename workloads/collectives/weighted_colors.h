// Colors of unequal parts, for dimensions of unequal speed.
//
// Colors that take the dimensions in rotated orders with equal parts load all dimensions
// alike only if these are alike. On 4x4x8 the color that takes the long axis last
// sends 7/2 * 16 = 56 shards over it, another 3/2 * 32 = 48 over a short one; and
// while the few bytes of the first phases pass, most links idle. The link between
// the devices of a chip has work only after everything else.
//
// Here time is cut into slots. A color is an order of the dimensions and a slot for
// each of its phases, later ones later; with more slots than dimensions some colors are
// still gathering along their first dimension while others are at their last. The time
// of a slot is that of its busiest dimension. How much of the data each color gets is
// the solution of a linear program:
//
//   minimize  sum over slots of t(slot),   t(slot) >= sum over colors of
//             weight * time of the color's phase in this slot on this dimension, each dimension
//             sum of weights = 1
//
// which leaves at most slots * dimensions + 1 colors. Latency is not part of it.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_WEIGHTED_COLORS_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_WEIGHTED_COLORS_H_

#include <cstdint>
#include <vector>

#include "workloads/collectives/collective.h"
#include "workloads/collectives/dimension.h"
#include "workloads/collectives/plan.h"

namespace tpusim::collectives {

// Kind, dimensions, orders, slots and weights of such a plan; the rest is left to the caller.
Plan WeightedPlan(CollectiveKind kind, const std::vector<Dimension>& dimensions, int slots);

// Plans worth trying, with fewer slots (less latency) and with more; none where colors of
// equal parts do as well, or where `memory` (of a device; 0: no limit) cannot serve
// all dimensions at once and sharing it out would only delay some of them.
std::vector<Plan> WeightedPlans(CollectiveKind kind, const std::vector<Dimension>& dimensions,
                                BytesPerSecond memory);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_WEIGHTED_COLORS_H_
