// Which values live in the other memory, when, and which copies that takes.
//
// A value that a kernel makes may be there from the beginning. If something that needs it
// in HBM comes later it is evicted: copied to HBM beside what runs then. From HBM a value
// is prefetched for a use. An allocation is one span of time in which it is there.
//
// Copies go only where HBM has time for them beside kernels, or where they save more than
// they make everything wait.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_PLAN_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "configs/units.h"
#include "workloads/passes/spaces/space_timeline.h"
#include "workloads/passes/spaces/space_values.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

struct SpaceAllocation {
  // Where the copy from HBM starts: before the instruction there. Of the first of a
  // value that is made in the other memory, where it is made.
  size_t from = 0;
  bool prefetched = false;
  std::vector<const SpaceUse*> uses;
};

struct SpacePlan {
  const SpaceValue* value = nullptr;
  std::vector<SpaceAllocation> allocations;  // none: it lives in HBM
  bool evicted = false;                      // the first allocation ends with a copy to HBM
  size_t evicted_by = 0;                     // the copy is waited for before the instruction there
};

class SpacePlanner {
 public:
  // The target must live as long.
  SpacePlanner(const target::Target& target, int64_t space, Bytes capacity);

  // What is best for a value beside all that was planned before; without copies if they
  // are not wanted.
  SpacePlan Plan(const SpaceValue& value, bool copies) const;
  Picoseconds TimeOfCopy(Bytes bytes, bool to_hbm) const;

 private:
  // How many of the uses from `first` on are served if the value is there from `from`.
  size_t Served(const SpaceValue& value, size_t from, size_t first) const;
  bool AllocateAtMaking(const SpaceValue& value, bool copies, SpacePlan& plan, size_t& next) const;
  bool Prefetch(const SpaceValue& value, size_t earliest, SpacePlan& plan, size_t& next) const;

  const target::Target& target_;
  const int64_t space_;
  const Bytes capacity_;
};

// How long a computation will take with its arrays where plans put them.
struct SpaceReplay {
  Picoseconds length;
  std::vector<Picoseconds> waited;  // by plan, for its copies
};

// One execution, without what it calls: the replay of cost/replay.h with kernels as
// much shorter as their arrays save, and with the copies. The plans are of values of the
// timeline.
SpaceReplay ReplayWith(const std::vector<SpacePlan>& plans, const SpaceTimeline& timeline,
                       const SpacePlanner& planner, const target::Target& target);

// Which copies between HBM and the other memory are worth it.
//
// A planner decides value by value and cannot know what its copies will meet on HBM and in
// which order everything waits for them. So several plans of the whole module are made and
// replayed, and the shortest wins: without copies; with those that HBM has more or less time
// for; each of these without the copies that are waited for longer than they save; and the
// best of all without single ones that save least beyond that. A plan without copies is always
// among them: by the replay's estimate no copy makes a step longer.
//
// Looked up, never iterated.
using SpacePlans = std::unordered_map<const SpaceTimeline*, std::vector<SpacePlan>>;

// Values come first that are planned first. The time is in proportion to the module.
SpacePlans SearchSpacePlans(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines,
                            const std::vector<const SpaceValue*>& values,
                            const SpacePlanner& planner, const target::Target& target);

// Puts a plan of memory-space assignment into the schedule: memory spaces in layouts,
// copy-starts and copy-dones, and every user on the copy that it is to read.
//
// The plans of one computation, whose schedule follows.
void ApplySpaces(const std::vector<SpacePlan>& plans, SpaceTimeline& timeline, int64_t space);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_PLAN_H_
