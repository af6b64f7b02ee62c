// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_LOOPS_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_LOOPS_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kInvariantExpression{
    "hoist-invariants.expression", 256, "expressions",
    "the search for what a value of a loop is made of gives up"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_LOOPS_LIMITS_H_
