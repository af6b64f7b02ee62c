// Puts a plan of memory-space assignment into the schedule: memory spaces in layouts,
// copy-starts and copy-dones, and every user on the copy that it is to read.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_APPLY_SPACES_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_APPLY_SPACES_H_

#include <cstdint>
#include <vector>

#include "workloads/passes/spaces/space_plan.h"

namespace tpusim::passes {

// The plans of one computation, whose schedule follows.
void ApplySpaces(const std::vector<SpacePlan>& plans, SpaceTimeline& timeline, int64_t space);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_APPLY_SPACES_H_
