// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kSpaceRounds{
    "memory-space-assignment.rounds", 2, "rounds",
    "how often copies that are waited for too long are left out, all at once"};
inline constexpr Limit kSpaceCopiesLeftOut{
    "memory-space-assignment.singles", 8, "values",
    "values of the best trial that are tried without copies one by one"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_LIMITS_H_
