// Permutations: every source writes its message straight to its target.
//
// The route is a shortest one; where both ways round a ring are equally short,
// half of the message goes each way. A device that is its own target sends to itself,
// over no link, so that all devices of a permutation run the same program; one
// that no pair names as target gets zeros. Sources that receive nothing
// wait until their message has left, so that they cannot run ahead of their
// links.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_PERMUTE_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_PERMUTE_H_

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "workloads/collectives/bodies.h"
#include "workloads/collectives/collective.h"

namespace tpusim::collectives {

// launch + the slowest pair: hops * hop latency + what crosses its busiest link
// at the effective rate. A fill or copy counts alike.
isa::CollectiveInfo PermuteInfo(const configs::Config& config, const CollectiveRequest& request);
CollectiveUse PermuteUse(const configs::Config& config, const CollectiveRequest& request);

void AddPermuteBodies(const configs::Config& config, const CollectiveRequest& request,
                      isa::PodProgram& program, Roles& roles);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_PERMUTE_H_
