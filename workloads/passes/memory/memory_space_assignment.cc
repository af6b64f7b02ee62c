#include "workloads/passes/memory/memory_space_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/control.h"
#include "workloads/passes/memory/apply_spaces.h"
#include "workloads/passes/memory/space_plan.h"
#include "workloads/passes/memory/space_replay.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Shape;

// How often a loop body counts as run, as in the TPU compiler
// (xla_tpu_memory_space_assignment_while_execution_count).
constexpr double kLoopWeight = 5;

using Plans = std::unordered_map<const SpaceTimeline*, std::vector<SpacePlan>>;

// When HBM counts as free for copies (SpaceTimeline::Restart): what is tried.
struct Copies {
  bool wanted;
  double eager;
};
constexpr Copies kCopies[] = {{false, 0}, {true, 0}, {true, 0.25}, {true, 0.5}, {true, 1}};

// The first value that is in one of the spaces, or null.
const Instruction* FindIn(const hlo::Module& module, const std::vector<int64_t>& spaces) {
  for (const Computation* computation : hlo::ControlComputations(module)) {
    for (const Instruction* i : computation->instructions()) {
      for (const Shape* leaf : hlo::Leaves(i->shape())) {
        if (!leaf->IsArray()) continue;
        const auto found = std::find(spaces.begin(), spaces.end(), leaf->layout.memory_space);
        if (found != spaces.end()) return i;
      }
    }
  }
  return nullptr;
}

double Rank(const SpaceValue& value) {
  return value.Benefit() / std::sqrt(static_cast<double>(value.bytes.value()));
}

std::string Explained(const SpacePlan& plan, const target::MemorySpace& space) {
  const SpaceValue& value = *plan.value;
  std::vector<std::string> stays;
  for (const SpaceStay& stay : plan.stays) {
    std::vector<std::string> users;
    for (const SpaceUse* use : stay.uses) users.push_back(use->user->name());
    stays.push_back(fmt::format("{} {}, read by {}", stay.prefetched ? "prefetched before" : "from",
                                value.timeline->order()[stay.from]->name(),
                                fmt::join(users, ", ")));
  }
  return fmt::format("{} of {} B in {}: {}{}; saves {} ns", value.storage->name(),
                     value.bytes.value(), space.name, fmt::join(stays, "; "),
                     plan.evicted ? "; then copied to HBM" : "",
                     static_cast<int64_t>(value.Benefit()) / 1000);
}

}  // namespace

absl::StatusOr<bool> AssignMemory(hlo::Module& module, const PassContext& context) {
  TPUSIM_CHECK(context.cost != nullptr, "an assignment of memories without costs");
  const target::Target& target = context.target;
  if (const Instruction* placed = FindIn(module, {hlo::kCmemSpace});
      placed != nullptr && target.Usable(hlo::kCmemSpace) == Bytes(0)) {
    return UserError(
        fmt::format("{} is in CMEM (S({}) in its layout), which {} does not have; v4 and v4i do",
                    placed->Describe(), hlo::kCmemSpace, target.chip().name));
  }
  if (FindIn(module, {hlo::kCmemSpace, hlo::kVmemSpace}) != nullptr) return false;
  const bool cmem = target.Usable(hlo::kCmemSpace) > Bytes(0);
  const int64_t space = cmem ? hlo::kCmemSpace : hlo::kVmemSpace;
  // Windows of kernels are in VMEM too, and counted.
  const Bytes capacity = cmem ? target.Usable(space) : target.chip().vmem.bytes;

  ASSIGN_OR_RETURN(const auto timelines,
                   SpaceTimelines(module, target, *context.cost, space, kLoopWeight));
  std::vector<std::vector<SpaceValue>> values;  // by timeline
  std::vector<const SpaceValue*> ranked;
  for (const auto& timeline : timelines) {
    ASSIGN_OR_RETURN(std::vector<SpaceValue> found,
                     SpaceValuesOf(*timeline, target, *context.cost, space));
    values.push_back(std::move(found));
  }
  for (const std::vector<SpaceValue>& of : values) {
    for (const SpaceValue& value : of) {
      if (value.bytes <= capacity) ranked.push_back(&value);
    }
  }
  // The program's order decides between equals.
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const SpaceValue* a, const SpaceValue* b) { return Rank(*a) > Rank(*b); });
  const SpacePlanner planner(target, space, capacity);
  // Which copies are worth it shows when all of them run beside everything else.
  Plans best;
  double shortest = 0;
  for (const Copies& copies : kCopies) {
    RestartAll(timelines, copies.eager);
    Plans plans;
    for (const SpaceValue* value : ranked) {
      SpacePlan plan = planner.Plan(*value, copies.wanted);
      if (!plan.stays.empty()) plans[value->timeline].push_back(std::move(plan));
    }
    double length = 0;
    for (const auto& timeline : timelines) {
      length += timeline->executions() *
                ToSeconds(LengthWith(plans[timeline.get()], *timeline, planner, target));
    }
    if (&copies != kCopies && length >= shortest) continue;
    shortest = length;
    best = std::move(plans);
  }
  bool changed = false;
  for (const auto& timeline : timelines) {
    const std::vector<SpacePlan>& plans = best[timeline.get()];
    if (plans.empty()) continue;
    changed = true;
    if (context.explanation != nullptr) {
      for (const SpacePlan& plan : plans) {
        context.explanation->push_back(Explained(plan, target::MemorySpaceOf(space)));
      }
    }
    ApplySpaces(plans, *timeline, space);
  }
  return changed;
}

}  // namespace tpusim::passes
