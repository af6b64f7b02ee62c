// Limits of effort of the partitioner (configs/limit.h).
#ifndef TPUSIM_WORKLOADS_SPMD_LIMITS_H_
#define TPUSIM_WORKLOADS_SPMD_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::spmd::limits {

inline constexpr Limit kRefitRounds{
    "spmd.refit_rounds", 6, "changes of uneven shards",
    "a piece that has no sender in so many permutes is gathered and sliced"};
inline constexpr Limit kRefitPairs{
    "spmd.refit_pairs", int64_t{1} << 22, "changes of uneven shards",
    "pairs of devices of which one may send to the other: a fraction of a second"};
inline constexpr Limit kWantedShardings{
    "spmd.wanted_shardings", 4, "constraints",
    "shardings of one value, stated for its users, that the split of its operation is priced for"};

}  // namespace tpusim::spmd::limits

#endif  // TPUSIM_WORKLOADS_SPMD_LIMITS_H_
