// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kUsesOfExchange{"round-before-exchange.uses", 64, "collectives",
                                       "instructions looked at behind one collective"};
inline constexpr Limit kCombinedKinds{"combine.kinds", 32, "kinds of collectives",
                                      "kinds whose order among each other is followed at once"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_LIMITS_H_
