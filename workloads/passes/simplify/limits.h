// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_SIMPLIFY_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_SIMPLIFY_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kSimplifyRounds{
    "simplify.rounds", 16, "rounds of rules",
    "every round takes what the one before left over: three or four find all there is"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_SIMPLIFY_LIMITS_H_
