// Manual regions (shard_map): from JAX's markers to one call with shardings.
//
// Two lowerings write them. Shardy's: GlobalToLocalShape over all operands, a
// call, LocalToGlobalShape over all results, with the shardings as text. The
// older partitioner's: per operand a Sharding and SPMDFullToShardShape, a call,
// per result a Sharding and SPMDShardToFullShape. Either way the region becomes a
// call from global operands to global results and an entry in `manual_regions`.
#ifndef TPUSIM_WORKLOADS_SHARDING_NORMALISED_REGIONS_H_
#define TPUSIM_WORKLOADS_SHARDING_NORMALISED_REGIONS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/normalised/normalise.h"

namespace tpusim::sharding {

// A call between such markers, which must not be inlined.
bool IsRegionCall(const hlo::Instruction& call);

// Replaces the markers around `call`. `outer` are the manual axes of the regions
// that it is in. Returns the new call; markers are left to RemoveDead().
absl::StatusOr<hlo::Instruction*> RewriteRegion(hlo::Instruction* call, const Axes& outer,
                                                NormalisedModule* out);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_NORMALISED_REGIONS_H_
