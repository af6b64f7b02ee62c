// Carries out a reshard plan. The only place that adds collectives to a program.
#ifndef TPUSIM_WORKLOADS_SPMD_RESHARD_H_
#define TPUSIM_WORKLOADS_SPMD_RESHARD_H_

#include <functional>

#include "absl/status/statusor.h"
#include "workloads/spmd/emit/builder.h"
#include "workloads/spmd/reshard_plan.h"

namespace tpusim::spmd {

// Makes the computation that adds up partial results of a value.
using RegionMaker = std::function<hlo::Computation*()>;

// `value` is this device's shard of a value of shape `global` sharded `from`;
// the result is its shard sharded `to`.
hlo::Instruction* CarryOut(Builder& builder, hlo::Instruction* value, const hlo::Shape& global,
                           const ReshardPlan& plan, const RegionMaker& region);

// Returns which device sends to which when shards of one size change devices: a permutation that
// lets every device that already holds its shard keep it.
std::vector<std::pair<int64_t, int64_t>> PermutePairs(const sharding::Mesh& mesh,
                                                      const sharding::Sharding& from,
                                                      const sharding::Sharding& to);
// The mesh axes along which some pair moves. TPUSIM_CHECK: every pair names
// partitions of the mesh (hlo::VerifyCollectives).
sharding::Axes AxesOfPairs(const sharding::Mesh& mesh,
                           const std::vector<std::pair<int64_t, int64_t>>& pairs);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_RESHARD_H_
