// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kOwnOrders{
    "layout.own_orders", 6, "orders of dimensions",
    "the best of those of a class alone are tried with its neighbours"};
inline constexpr Limit kNeighbourOrders{"layout.neighbour_orders", 8, "neighbours",
                                        "neighbours whose order a class is offered"};
inline constexpr Limit kLayoutRounds{"layout.rounds", 3, "classes still to be decided again",
                                     "how often every class is decided"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_LIMITS_H_
