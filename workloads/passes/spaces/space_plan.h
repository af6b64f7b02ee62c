// Plans which values live in the other memory, when, and which copies that takes.
//
// A value that a kernel makes may be there from the beginning. If something that needs it
// in HBM comes later it is evicted: copied to HBM beside what runs then. From HBM a value
// is prefetched for a use. An allocation is one span of time in which it is there.
//
// Copies go only beside kernels that take as long, or where they save more than
// they make everything wait.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_PLAN_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/cost/cost_model.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/spaces/space_timeline.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// The arrays that could live in another memory than HBM, and what that would gain.
//
// A value is an array that an instruction makes (or that enters the computation as an
// argument or an element of what a loop carries), under all the names that bitcasts and
// tuples give it. Kernels may write it to and read it from any memory that their windows
// reach, synchronous collectives from and to VMEM; everything else (asynchronous
// operations, loops, calls, custom calls, updates in place, results of the computation)
// has it in HBM.
struct SpaceUse {
  hlo::Instruction* user = nullptr;
  size_t at = 0;
  bool by_windows = false;  // or by a collective that can; else it has to be in HBM
  kernels::PlaceableKernel* kernel = nullptr;  // where the user is one
  std::vector<size_t> arrays;                  // of the kernel, which are this value
  Picoseconds saved{0};                        // by reading it from the other memory
  Bytes read{0};                               // from HBM, if it is there
};

struct SpaceValue {
  hlo::Instruction* storage = nullptr;  // what makes it, or the element of what does
  // Instructions that rename the value, operands first, and the name that each one renames.
  std::vector<hlo::Instruction*> names;
  std::unordered_map<const hlo::Instruction*, hlo::Instruction*> renames;
  SpaceTimeline* timeline = nullptr;
  size_t made_at = 0;
  bool made_by_windows = false;
  kernels::PlaceableKernel* maker = nullptr;  // where a kernel makes it, as its array
  size_t array = 0;
  Picoseconds saved_by_making{0};
  std::vector<SpaceUse> uses;  // in order of execution, one per instruction
  bool lives_out = false;
  Bytes bytes{0};

  // Time saved in all, counted as often as the loops around it run.
  double Benefit() const;
};

// Returns the values of a computation that could gain, in the order of the schedule. `space` is the
// memory that they could move to. Error: a kernel without a rule.
absl::StatusOr<std::vector<SpaceValue>> SpaceValuesOf(SpaceTimeline& timeline,
                                                      const hlo::AliasAnalysis& aliases,
                                                      const target::Target& target,
                                                      cost::CostModel& cost, int64_t space);

struct SpaceAllocation {
  // The copy from HBM starts before the instruction at this position. The first allocation of a
  // value that is made in the other memory starts where it is made.
  size_t from = 0;
  size_t last = 0;  // it is there until then
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

  // Returns the best plan for a value beside all that was planned before; without copies if they
  // are not wanted.
  SpacePlan Plan(const SpaceValue& value, bool copies) const;
  Picoseconds TimeOfCopy(Bytes bytes, bool to_hbm) const;
  Bytes capacity() const { return capacity_; }
  // Whether the space is where windows of kernels are, too.
  bool HasWindows() const;

 private:
  // Returns how many of the uses from `first` on are served if the value is there from `from`.
  size_t Served(const SpaceValue& value, size_t from, size_t first) const;
  bool AllocateAtMaking(const SpaceValue& value, bool copies, SpacePlan& plan, size_t& next) const;
  bool Prefetch(const SpaceValue& value, size_t earliest, SpacePlan& plan, size_t& next) const;

  const target::Target& target_;
  const int64_t space_;
  const Bytes capacity_;
};

// The time that a computation takes with its arrays where plans put them.
struct SpaceReplay {
  Picoseconds length;
  std::vector<Picoseconds> waited;  // by plan, for its copies
  // VMEM that windows of the kernels take whose arrays are moved, by position.
  std::vector<std::pair<size_t, Bytes>> windows;
};

// Executions of a computation, without what it calls, one for each set of plans for its values:
// cost::Replay with kernels as much shorter as their arrays save, and with the copies.
class SpaceReplays {
 public:
  // The timeline, the planner and the target must outlive the replays.
  SpaceReplays(const SpaceTimeline& timeline, const SpacePlanner& planner,
               const target::Target& target);

  SpaceReplay With(const std::vector<SpacePlan>& plans);

 private:
  // Arrays of the kernel at a position that are in the other memory.
  struct Placed {
    kernels::PlaceableKernel* kernel = nullptr;
    std::vector<bool> there, before;  // in this set of plans; in the last that had any there
    cost::Work work;                  // with `before`, as the windows
    Bytes windows{0};
  };
  void Place(size_t at, kernels::PlaceableKernel* kernel, size_t array);
  // Adds a copy of plan number `plan`; both ends before the instructions at the positions.
  void Copy(size_t plan, size_t from, size_t until, Bytes bytes, bool to_hbm);

  const SpaceTimeline& timeline_;
  const SpacePlanner& planner_;
  const target::Target& target_;
  cost::ScheduleGraph graph_;                     // between replays that of the timeline
  std::vector<Placed> placed_;                    // by position
  std::vector<size_t> touched_;                   // positions in `placed_` of this set
  std::vector<std::pair<size_t, int>> inserted_;  // nodes of copies, and what they come before
  std::vector<std::pair<int, size_t>> copies_;    // node that starts it, number of the plan
};

// Finds the copies between HBM and the other memory that shorten the step.
//
// A planner decides value by value and cannot know what its copies will meet on HBM and in
// which order everything waits for them. So several plans of the whole module are made and
// replayed, and the shortest wins: without copies; with those that have time; these without the
// copies that are waited for longer than they save; and the best of all without single ones that
// save least beyond that. A plan without copies is always
// among them: by the replay's estimate no copy makes a step longer.
//
// Plans by computation; looked up, never iterated.
using SpacePlans = std::unordered_map<const SpaceTimeline*, std::vector<SpacePlan>>;

// Values come first that are planned first. The time is in proportion to the module.
SpacePlans SearchSpacePlans(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines,
                            const std::vector<const SpaceValue*>& values,
                            const SpacePlanner& planner, const target::Target& target);

// A kernel whose arrays have left HBM may take larger windows of those that have not, for which
// planning had left no room. Whether some do not fit beside the plans: then planning knows these
// windows from now on, and plans have to be made anew. Ends, as what is known only grows.
bool WidenWindows(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines,
                  const SpacePlans& plans, const SpacePlanner& planner,
                  const target::Target& target);

// Puts a plan of memory-space assignment into the schedule: memory spaces in layouts,
// copy-starts and copy-dones, and every user on the copy that it is to read.
//
// The plans of one computation, whose schedule follows.
void ApplySpaces(const std::vector<SpacePlan>& plans, SpaceTimeline& timeline, int64_t space);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_PLAN_H_
