// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kRematerializeRounds{
    "rematerialize.rounds", 32, "rounds",
    "the plan of the memory is made so often; what is dropped in one round is seen by the next"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_LIMITS_H_
