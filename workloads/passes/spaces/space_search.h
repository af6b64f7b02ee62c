// Which copies between HBM and the other memory are worth it.
//
// A planner decides value by value and cannot know what its copies will meet on HBM and in
// which order everything waits for them. So several plans of the whole module are made and
// replayed, and the shortest wins: without copies; with those that HBM has more or less time
// for; each of these without the copies that are waited for longer than they save; and the
// best of all without single ones that save least beyond that. A plan without copies is always
// among them: by the replay's estimate no copy makes a step longer.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_SEARCH_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_SEARCH_H_

#include <memory>
#include <unordered_map>
#include <vector>

#include "workloads/passes/spaces/space_plan.h"
#include "workloads/passes/spaces/space_timeline.h"
#include "workloads/passes/spaces/space_values.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// Looked up, never iterated.
using SpacePlans = std::unordered_map<const SpaceTimeline*, std::vector<SpacePlan>>;

// Values come first that are planned first. The time is in proportion to the module.
SpacePlans SearchSpacePlans(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines,
                            const std::vector<const SpaceValue*>& values,
                            const SpacePlanner& planner, const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_SEARCH_H_
