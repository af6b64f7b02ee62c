// Limits of effort of the search for shardings and policies (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_SEARCH_LIMITS_H_
#define TPUSIM_WORKLOADS_SEARCH_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::search::limits {

// 64 at most: decisions that share an argument are the bits of a word.
inline constexpr Limit kDecisions{"shard.decisions", 64, "decisions",
                                  "decisions of a program that are searched"};
// n conflicts are resolved in 2^n ways. Others, which have fewer bytes, are left to propagation.
inline constexpr Limit kConflicts{"shard.conflicts", 3, "conflicts of candidates",
                                  "conflicts of a candidate that constraints resolve"};
// Each is a module of its own.
inline constexpr Limit kPolicies{"shard.policies", 32, "combinations of policies",
                                 "combinations of rematerialisation policies that are tried"};

}  // namespace tpusim::search::limits

#endif  // TPUSIM_WORKLOADS_SEARCH_LIMITS_H_
