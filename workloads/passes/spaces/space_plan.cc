#include "workloads/passes/spaces/space_plan.h"

#include <algorithm>
#include <utility>

#include "configs/memory.h"
#include "models/timing/kernel_steps.h"
#include "workloads/cost/transfers.h"

namespace tpusim::passes {
namespace {

isa::MemorySpace Isa(int64_t space) { return configs::MemoryOfNumber(space).space; }

}  // namespace

SpacePlanner::SpacePlanner(const target::Target& target, int64_t space, Bytes capacity)
    : target_(target), space_(space), capacity_(capacity) {}

bool SpacePlanner::HasWindows() const { return space_ == hlo::kVmemSpace; }

Picoseconds SpacePlanner::TimeOfCopy(Bytes bytes, bool to_hbm) const {
  isa::Dma dma;
  dma.from = to_hbm ? Isa(space_) : isa::MemorySpace::kHbm;
  dma.to = to_hbm ? isa::MemorySpace::kHbm : Isa(space_);
  dma.bytes = bytes;
  return cost::TimeOfTransfer(target_.chip(), {{dma}});
}

size_t SpacePlanner::Served(const SpaceValue& value, size_t from, size_t first) const {
  size_t served = 0, begin = from;
  for (size_t u = first; u < value.uses.size(); ++u) {
    const SpaceUse& use = value.uses[u];
    if (!use.by_windows) continue;
    if (!value.timeline->Fits(begin, use.at, value.bytes, capacity_)) break;
    begin = use.at + 1;
    served = u + 1 - first;
  }
  return served;
}

bool SpacePlanner::AllocateAtMaking(const SpaceValue& value, bool copies, SpacePlan& plan,
                                    size_t& next) const {
  if (!value.made_by_windows) return false;
  const size_t served = Served(value, value.made_at, 0);
  if (served == 0) return false;
  SpaceTimeline& timeline = *value.timeline;
  SpaceAllocation allocation;
  allocation.from = value.made_at;
  size_t last = value.made_at;
  Picoseconds saved = value.saved_by_making;
  // The first thing that needs it in HBM; the end, if that is a result.
  size_t needed = timeline.order().size() - 1;
  bool evicted = value.lives_out || served < value.uses.size();
  for (size_t u = 0; u < value.uses.size(); ++u) {
    const SpaceUse& use = value.uses[u];
    if (u >= served || !use.by_windows) {
      needed = std::min(needed, use.at);
      evicted = true;
      continue;
    }
    allocation.uses.push_back(&use);
    saved += use.saved;
    last = use.at;
  }
  if (evicted) {
    if (!copies) return false;
    const Picoseconds copy = TimeOfCopy(value.bytes, /*to_hbm=*/true);
    if (needed <= value.made_at + 1) return false;
    const Picoseconds spare = timeline.SpareTime(value.made_at + 1, needed - 1, copy);
    if (saved <= copy - spare) return false;
    const size_t copied = timeline.EndOfCopy(value.made_at, needed, copy);
    if (copied > last) {
      if (!timeline.Fits(last + 1, copied, value.bytes, capacity_)) return false;
      last = copied;
    }
    timeline.TakeSpareTime(value.made_at + 1, needed - 1, copy);
    // Waited for where it is over, not where it is needed: its source is in the way so long.
    plan.evicted_by = std::min(copied + 1, needed);
  }
  timeline.Occupy(value.made_at, last, value.bytes);
  allocation.last = last;
  plan.evicted = evicted;
  plan.allocations.push_back(std::move(allocation));
  next = served;
  return true;
}

bool SpacePlanner::Prefetch(const SpaceValue& value, size_t earliest, SpacePlan& plan,
                            size_t& next) const {
  SpaceTimeline& timeline = *value.timeline;
  const SpaceUse& use = value.uses[next];
  if (!use.by_windows || use.saved <= Picoseconds(0) || use.at <= earliest) return false;
  const Picoseconds copy = TimeOfCopy(value.bytes, /*to_hbm=*/false);
  const configs::Policy& policy = target_.policy();
  for (const double overlap : {policy.prefetch_preferred_overlap, policy.prefetch_least_overlap}) {
    const std::optional<size_t> from =
        timeline.StartOfCopy(earliest, use.at, timing::Scaled(copy, overlap),
                             timing::Scaled(copy, policy.prefetch_most_overlap));
    if (!from) continue;
    const size_t served = Served(value, *from, next);
    if (served == 0) continue;
    SpaceAllocation allocation;
    allocation.from = *from;
    allocation.prefetched = true;
    size_t last = use.at;
    double read = 0;
    for (size_t u = next; u < next + served; ++u) {
      if (!value.uses[u].by_windows) continue;
      allocation.uses.push_back(&value.uses[u]);
      read += static_cast<double>(value.uses[u].read.value());
      last = value.uses[u].at;
    }
    if (read < policy.prefetch_least_use * static_cast<double>(value.bytes.value())) continue;
    timeline.TakeSpareTime(*from, use.at - 1, copy);
    timeline.Occupy(*from, last, value.bytes);
    allocation.last = last;
    plan.allocations.push_back(std::move(allocation));
    next += served;
    return true;
  }
  return false;
}

SpacePlan SpacePlanner::Plan(const SpaceValue& value, bool copies) const {
  SpacePlan plan;
  plan.value = &value;
  size_t next = 0;  // the first use that is not served
  size_t earliest = value.made_at + 1;
  if (AllocateAtMaking(value, copies, plan, next) && plan.evicted) {
    // In HBM once more when the copy is over.
    earliest = value.timeline->EndOfCopy(value.made_at, value.timeline->order().size() - 1,
                                         TimeOfCopy(value.bytes, /*to_hbm=*/true)) +
               1;
  }
  while (copies && next < value.uses.size()) {
    if (!Prefetch(value, earliest, plan, next)) ++next;
  }
  return plan;
}

}  // namespace tpusim::passes
