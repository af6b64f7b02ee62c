#include "workloads/passes/memory/space_replay.h"

#include <algorithm>

#include "models/timing/device_memory.h"
#include "models/timing/kernel_steps.h"
#include "workloads/passes/schedule/replay.h"

namespace tpusim::passes {
namespace {

class Builder {
 public:
  Builder(const SpaceTimeline& timeline, const target::Target& target)
      : target_(target), graph_(timeline.graph()), before_(graph_.nodes.size() + 1) {}

  // The kernel at a position does not move these bytes any more.
  void Shorten(size_t at, Picoseconds saved, Bytes moved) {
    cost::Work& work = graph_.nodes[at].work;
    if (work.time == Picoseconds(0)) return;
    const Picoseconds hbm = timing::Scaled(work.time, work.share[cost::kHbmResource]);
    const Picoseconds less = std::min(hbm, TransferTime(moved, timing::HbmRate(target_.chip())));
    const double bytes = work.rate.value() * ToSeconds(work.time);
    work.time -= std::min(work.time, saved);
    if (work.time == Picoseconds(0)) {
      work.share[cost::kHbmResource] = 0;
      return;
    }
    work.share[cost::kHbmResource] = std::min(1.0, Ratio(hbm - less, work.time));
    const double left = std::max(0.0, bytes - static_cast<double>(moved.value()));
    work.rate = BytesPerSecond(left / ToSeconds(work.time));
  }

  // Both ends before the instructions at the positions.
  void Copy(size_t from, size_t until, Bytes bytes, Picoseconds time) {
    ScheduleNode start, done;
    start.role = ScheduleNode::Role::kStart;
    done.role = ScheduleNode::Role::kDone;
    start.kind = done.kind = kCopy;
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
  }

  Picoseconds Length() const {
    ScheduleOrder order;
    order.reserve(graph_.nodes.size());
    for (size_t p = 0; p < before_.size(); ++p) {
      order.insert(order.end(), before_[p].begin(), before_[p].end());
      if (p + 1 < before_.size()) order.push_back(static_cast<int>(p));
    }
    return Replay(graph_, order).work.time;
  }

 private:
  const target::Target& target_;
  ScheduleGraph graph_;
  std::vector<ScheduleOrder> before_;
};

}  // namespace

Picoseconds LengthWith(const std::vector<SpacePlan>& plans, const SpaceTimeline& timeline,
                       const SpacePlanner& planner, const target::Target& target) {
  Builder builder(timeline, target);
  for (const SpacePlan& plan : plans) {
    const SpaceValue& value = *plan.value;
    for (const SpaceStay& stay : plan.stays) {
      for (const SpaceUse* use : stay.uses) builder.Shorten(use->at, use->saved, use->read);
      if (stay.prefetched) {
        builder.Copy(stay.from, stay.uses.front()->at, value.bytes,
                     planner.TimeOfCopy(value.bytes, /*to_hbm=*/false));
        continue;
      }
      builder.Shorten(value.made_at, value.saved_by_making, value.bytes);
      if (plan.evicted) {
        builder.Copy(value.made_at + 1, plan.evicted_by, value.bytes,
                     planner.TimeOfCopy(value.bytes, /*to_hbm=*/true));
      }
    }
  }
  return builder.Length();
}

}  // namespace tpusim::passes
