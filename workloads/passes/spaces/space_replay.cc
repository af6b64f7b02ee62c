#include <algorithm>
#include <map>
#include <utility>

#include "workloads/cost/chip_cost_model.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/passes/spaces/space_plan.h"

namespace tpusim::passes {
namespace {

class Builder {
 public:
  Builder(const SpaceTimeline& timeline, const target::Target& target)
      : target_(target), graph_(timeline.graph()), before_(graph_.nodes.size() + 1) {}

  // An array of the kernel at a position is in the other memory.
  void Place(size_t at, kernels::PlaceableKernel* kernel, size_t array) {
    if (kernel == nullptr) return;  // a collective
    Placed& placed = placed_[at];
    placed.kernel = kernel;
    placed.there.resize(kernel->arrays());
    placed.there[array] = true;
  }

  // Of plan number `plan`; both ends before the instructions at the positions.
  void Copy(size_t plan, size_t from, size_t until, Bytes bytes, Picoseconds time) {
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
    before_[from].push_back(done.start);
    before_[until].push_back(done.start + 1);
    graph_.nodes.push_back(start);
    graph_.nodes.push_back(done);
    copies_.push_back({done.start, plan});
  }

  SpaceReplay Run(size_t plans) {
    SpaceReplay result;
    for (const auto& [at, placed] : placed_) {
      const kernels::KernelCost& kernel = placed.kernel->With(placed.there);
      graph_.nodes[at].work = cost::WorkOfKernel(target_.chip(), kernel);
      result.windows.emplace_back(at, kernel.windows);
    }
    cost::ScheduleOrder order;
    order.reserve(graph_.nodes.size());
    for (size_t p = 0; p < before_.size(); ++p) {
      order.insert(order.end(), before_[p].begin(), before_[p].end());
      if (p + 1 < before_.size()) order.push_back(static_cast<int>(p));
    }
    const cost::ReplayResult replay = cost::Replay(graph_, order);
    result.length = replay.work.time;
    result.waited.assign(plans, Picoseconds(0));
    for (const auto& [start, plan] : copies_) {
      result.waited[plan] += replay.stall[static_cast<size_t>(start)];
    }
    return result;
  }

 private:
  struct Placed {
    kernels::PlaceableKernel* kernel = nullptr;
    std::vector<bool> there;
  };

  const target::Target& target_;
  cost::ScheduleGraph graph_;
  std::map<size_t, Placed> placed_;  // by position
  std::vector<cost::ScheduleOrder> before_;
  std::vector<std::pair<int, size_t>> copies_;  // node that starts it, number of the plan
};

}  // namespace

SpaceReplay ReplayWith(const std::vector<SpacePlan>& plans, const SpaceTimeline& timeline,
                       const SpacePlanner& planner, const target::Target& target) {
  Builder builder(timeline, target);
  for (size_t p = 0; p < plans.size(); ++p) {
    const SpacePlan& plan = plans[p];
    const SpaceValue& value = *plan.value;
    for (const SpaceAllocation& allocation : plan.allocations) {
      for (const SpaceUse* use : allocation.uses) {
        for (const size_t array : use->arrays) builder.Place(use->at, use->kernel, array);
      }
      if (allocation.prefetched) {
        builder.Copy(p, allocation.from, allocation.uses.front()->at, value.bytes,
                     planner.TimeOfCopy(value.bytes, /*to_hbm=*/false));
        continue;
      }
      builder.Place(value.made_at, value.maker, value.array);
      if (plan.evicted) {
        builder.Copy(p, value.made_at + 1, plan.evicted_by, value.bytes,
                     planner.TimeOfCopy(value.bytes, /*to_hbm=*/true));
      }
    }
  }
  return builder.Run(plans.size());
}

}  // namespace tpusim::passes
