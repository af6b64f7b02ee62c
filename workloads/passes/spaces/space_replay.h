// How long a computation will take with its arrays where plans put them.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_REPLAY_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_REPLAY_H_

#include <vector>

#include "configs/units.h"
#include "workloads/passes/spaces/space_plan.h"
#include "workloads/passes/spaces/space_timeline.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

struct SpaceReplay {
  Picoseconds length;
  std::vector<Picoseconds> waited;  // by plan, for its copies
};

// One execution, without what it calls: the replay of schedule/replay.h with kernels as
// much shorter as their arrays save, and with the copies. The plans are of values of the
// timeline.
SpaceReplay ReplayWith(const std::vector<SpacePlan>& plans, const SpaceTimeline& timeline,
                       const SpacePlanner& planner, const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_REPLAY_H_
