#include <algorithm>
#include <utility>

#include "workloads/cost/chip_cost_model.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/passes/spaces/space_plan.h"

namespace tpusim::passes {

SpaceReplays::SpaceReplays(const SpaceTimeline& timeline, const SpacePlanner& planner,
                           const target::Target& target)
    : timeline_(timeline),
      planner_(planner),
      target_(target),
      graph_(timeline.graph()),
      placed_(graph_.nodes.size()) {}

void SpaceReplays::Place(size_t at, kernels::PlaceableKernel* kernel, size_t array) {
  if (kernel == nullptr) return;  // a collective
  Placed& placed = placed_[at];
  if (placed.there.empty()) {
    placed.kernel = kernel;
    placed.there.resize(kernel->arrays());
    touched_.push_back(at);
  }
  placed.there[array] = true;
}

void SpaceReplays::Copy(size_t plan, size_t from, size_t until, Bytes bytes, bool to_hbm) {
  const Picoseconds time = planner_.TimeOfCopy(bytes, to_hbm);
  cost::ScheduleNode start, done;
  start.role = cost::ScheduleNode::Role::kStart;
  done.role = cost::ScheduleNode::Role::kDone;
  start.kind = done.kind = cost::kCopy;
  start.transfer.latency = std::min(time, target_.chip().dma.start_latency);
  start.transfer.time = time - start.transfer.latency;
  start.transfer.share[cost::kHbmResource] = 1;
  if (start.transfer.time > Picoseconds(0)) {
    start.transfer.rate =
        BytesPerSecond(static_cast<double>(bytes.value()) / ToSeconds(start.transfer.time));
  }
  done.start = static_cast<int>(graph_.nodes.size());
  inserted_.emplace_back(from, done.start);
  inserted_.emplace_back(until, done.start + 1);
  graph_.nodes.push_back(std::move(start));
  graph_.nodes.push_back(std::move(done));
  copies_.emplace_back(done.start, plan);
}

SpaceReplay SpaceReplays::With(const std::vector<SpacePlan>& plans) {
  for (size_t p = 0; p < plans.size(); ++p) {
    const SpacePlan& plan = plans[p];
    const SpaceValue& value = *plan.value;
    for (const SpaceAllocation& allocation : plan.allocations) {
      for (const SpaceUse* use : allocation.uses) {
        for (const size_t array : use->arrays) Place(use->at, use->kernel, array);
      }
      if (allocation.prefetched) {
        Copy(p, allocation.from, allocation.uses.front()->at, value.bytes, /*to_hbm=*/false);
        continue;
      }
      Place(value.made_at, value.maker, value.array);
      if (plan.evicted) {
        Copy(p, value.made_at + 1, plan.evicted_by, value.bytes, /*to_hbm=*/true);
      }
    }
  }
  SpaceReplay result;
  for (const size_t at : touched_) {
    Placed& placed = placed_[at];
    if (placed.there != placed.before) {
      const kernels::KernelCost& kernel = placed.kernel->With(placed.there);
      placed.work = cost::WorkOfKernel(target_.chip(), kernel);
      placed.windows = kernel.windows;
      placed.before = placed.there;
    }
    placed.there.clear();
    graph_.nodes[at].work = placed.work;
    result.windows.emplace_back(at, placed.windows);
  }
  std::ranges::sort(result.windows);
  std::ranges::stable_sort(inserted_, {}, &std::pair<size_t, int>::first);
  cost::ScheduleOrder order;
  order.reserve(graph_.nodes.size());
  auto next = inserted_.begin();
  for (size_t p = 0; p <= placed_.size(); ++p) {
    for (; next != inserted_.end() && next->first == p; ++next) order.push_back(next->second);
    if (p < placed_.size()) order.push_back(static_cast<int>(p));
  }
  const cost::ReplayResult replay = cost::Replay(graph_, order);
  result.length = replay.work.time;
  result.waited.assign(plans.size(), Picoseconds(0));
  for (const auto& [start, plan] : copies_) {
    result.waited[plan] += replay.stall[static_cast<size_t>(start)];
  }
  for (const size_t at : touched_) graph_.nodes[at].work = timeline_.graph().nodes[at].work;
  graph_.nodes.resize(placed_.size());
  touched_.clear(), inserted_.clear(), copies_.clear();
  return result;
}

}  // namespace tpusim::passes
