// Limits of effort of the choice of algorithms (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_LIMITS_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::collectives::limits {

// A direct exchange has a route for every pair of members: larger groups pass data on from axis to
// axis. On twisted tori twice as large: short axes are lines to what is passed on.
inline constexpr Limit kDirectMembers{"collectives.direct_members", 128, "direct exchanges",
                                      "members of a group whose pairs all have a route"};
inline constexpr Limit kDirectPairs{"collectives.direct_pairs", 1 << 15, "direct exchanges",
                                    "routes of all groups"};
inline constexpr Limit kTwistedMembers{"collectives.twisted_members", 256, "direct exchanges",
                                       "members of a group on a twisted torus"};
inline constexpr Limit kTwistedPairs{"collectives.twisted_pairs", 1 << 16, "direct exchanges",
                                     "routes of all groups on a twisted torus"};
inline constexpr Limit kImprovedRing{
    "collectives.improved_ring", 64, "rings",
    "members of a ring that is shortened pair by pair: the time grows with their square"};
inline constexpr Limit kRingPasses{"collectives.ring_passes", 16, "rings still to be shortened",
                                   "passes over a ring that is shortened pair by pair"};

}  // namespace tpusim::collectives::limits

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_LIMITS_H_
