#include "workloads/passes/spaces/memory_space_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/passes/spaces/reasons.h"
#include "workloads/passes/spaces/space_plan.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Shape;

// The first value that is in the memory, or null.
const Instruction* FindIn(const hlo::Module& module, const configs::Memory& memory) {
  for (const Computation* computation : hlo::ControlComputations(module)) {
    for (const Instruction* i : computation->instructions()) {
      for (const Shape* leaf : hlo::Leaves(i->shape())) {
        if (leaf->IsArray() && leaf->layout.memory_space == memory.number) return i;
      }
    }
  }
  return nullptr;
}

// In steps of a thousandth, or the rounding of times to picoseconds would decide between
// equal arrays of equal kernels.
double Rank(const SpaceValue& value) {
  constexpr double kSteps = 1024;  // number: rounding of a rank
  int exponent = 0;
  const double mantissa =
      std::frexp(value.Benefit() / std::sqrt(static_cast<double>(value.bytes.value())), &exponent);
  return std::ldexp(std::round(mantissa * kSteps) / kSteps, exponent);
}

void Explain(const SpacePlan& plan, const configs::Memory& space, const Records& records) {
  const SpaceValue& value = *plan.value;
  std::vector<std::string> allocations;
  for (const SpaceAllocation& allocation : plan.allocations) {
    std::vector<std::string> users;
    for (const SpaceUse* use : allocation.uses) users.push_back(use->user->name());
    allocations.push_back(
        fmt::format("{} {}, read by {}", allocation.prefetched ? "prefetched before" : "from",
                    value.timeline->order()[allocation.from]->name(), fmt::join(users, ", ")));
  }
  records.Add(plan.evicted ? reasons::kPlacedThenEvicted : reasons::kPlaced, value.storage->name(),
              {{"bytes", value.bytes.value()},
               {"space", std::string(space.title)},
               {"stays", fmt::format("{}", fmt::join(allocations, "; "))},
               // number: a prefix of a unit
               {"saved_ns", static_cast<int64_t>(value.Benefit()) / 1000}});
}

}  // namespace

bool HasPlaces(const hlo::Module& module) {
  return std::ranges::any_of(configs::kMemories, [&](const configs::Memory& memory) {
    return memory.on_chip && FindIn(module, memory) != nullptr;
  });
}

absl::StatusOr<bool> AssignMemory(hlo::Module& module, const PassContext& context) {
  const target::Target& target = context.target;
  for (const configs::Memory& memory : configs::kMemories) {
    if (!memory.on_chip || memory.capacity(target.chip()) > Bytes(0)) continue;
    const Instruction* placed = FindIn(module, memory);
    if (placed == nullptr) continue;
    return UserError(fmt::format("{} is in {} (S({}) in its layout), which {} does not have; {} do",
                                 placed->Describe(), memory.title, memory.number,
                                 target.chip().name, configs::ChipsWith(memory)));
  }
  const configs::Memory& memory = target.FastMemory();
  const int64_t space = memory.number;
  // Windows of kernels are in VMEM too, and counted.
  const Bytes capacity = memory.planned ? target.Usable(space) : target.chip().vmem.bytes;

  ASSIGN_OR_RETURN(const auto timelines,
                   SpaceTimelines(context.facts->CallsOf(module), context.facts->Aliases(), target,
                                  context.cost, space, target.policy().loop_weight));
  for (const auto& timeline : timelines) {
    // A memory that is planned has a plan that says so (buffers/memory_plan.h).
    if (memory.planned || timeline->MostPlaced() <= capacity) continue;
    return UserError(fmt::format(
        "what the program itself puts into {} (S({}) in layouts) does not fit: {} B at its peak in "
        "{}, {} has {} B",
        memory.title, space, timeline->MostPlaced().value(), timeline->computation()->name(),
        target.chip().name, capacity.value()));
  }
  std::vector<std::vector<SpaceValue>> values;  // by timeline
  std::vector<const SpaceValue*> ranked;
  for (const auto& timeline : timelines) {
    ASSIGN_OR_RETURN(std::vector<SpaceValue> found,
                     SpaceValuesOf(*timeline, context.facts->Aliases().Of(*timeline->computation()),
                                   target, context.cost, space));
    values.push_back(std::move(found));
  }
  for (const std::vector<SpaceValue>& of : values) {
    for (const SpaceValue& value : of) {
      // Of a branch that is not taken none would save anything.
      if (value.bytes <= capacity && value.timeline->weight() > 0) ranked.push_back(&value);
    }
  }
  // The program's order decides between equals.
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const SpaceValue* a, const SpaceValue* b) { return Rank(*a) > Rank(*b); });
  const SpacePlanner planner(target, space, capacity);
  SpacePlans best = SearchSpacePlans(timelines, ranked, planner, target);
  while (WidenWindows(timelines, best, planner, target)) {
    best = SearchSpacePlans(timelines, ranked, planner, target);
  }
  bool changed = false;
  for (const auto& timeline : timelines) {
    const std::vector<SpacePlan>& plans = best[timeline.get()];
    if (plans.empty()) continue;
    changed = true;
    if (context.records.wanted()) {
      for (const SpacePlan& plan : plans) {
        Explain(plan, memory, context.records);
      }
    }
    ApplySpaces(plans, *timeline, space);
  }
  return changed;
}

}  // namespace tpusim::passes
