// The state of the network as steady/state.h means it.
#include <algorithm>
#include <compare>
#include <functional>
#include <vector>

#include "configs/status_macros.h"
#include "models/flow/network.h"

namespace tpusim::flow {

void Network::VisitFlow(Flow& flow, steady::StateVisitor& visitor) {
  visitor.Same(static_cast<int64_t>(flow.uses.size()));
  for (const FlowUse& use : flow.uses) {
    visitor.Same(use.resource);
    visitor.SameRate(use.weight);
  }
  visitor.SameRate(flow.cap);
  visitor.SameRate(flow.rate);
  Picoseconds settled(flow.settled), started(flow.started);
  visitor.Began(settled);
  visitor.Began(started);
  // Time and bytes to go: both shrink if the flow outlasts a period.
  int64_t left = flow.finish == kNever ? kNever : flow.finish - now_;
  visitor.LeftTime(left);
  visitor.LeftBytes(flow.remaining);
  visitor.Since(flow.limited);
  if (!visitor.moves()) return;
  flow.settled = settled.value();
  flow.started = started.value();
  SetFinish(static_cast<uint32_t>(&flow - flows_.data()));
}

void Network::Visit(Picoseconds now, const std::function<void(uint64_t tag)>& describe,
                    steady::StateVisitor& visitor) {
  Solve(now);
  TPUSIM_CHECK(completed_.empty(), "the instant is not over: a flow has yet to be told of its end");
  std::vector<Flow*> flows;
  flows.reserve(active_);
  for (Flow& flow : flows_) {
    if (flow.active) flows.push_back(&flow);
  }
  // In an order that does not depend on which was first within an instant.
  const auto resource_of = [](const FlowUse& use) { return use.resource; };
  std::sort(flows.begin(), flows.end(), [&](const Flow* a, const Flow* b) {
    if (a->started != b->started) return a->started < b->started;
    const auto order = std::lexicographical_compare_three_way(
        a->uses.begin(), a->uses.end(), b->uses.begin(), b->uses.end(),
        [&](const FlowUse& x, const FlowUse& y) { return resource_of(x) <=> resource_of(y); });
    return order != 0 ? order < 0 : a->sequence < b->sequence;
  });
  visitor.Same(static_cast<int64_t>(flows.size()));
  for (Flow* flow : flows) {
    describe(flow->tag);
    VisitFlow(*flow, visitor);
  }
  for (Resource& resource : resources_) {
    visitor.Same(static_cast<int64_t>(resource.moving));
    if (resource.moving > 0) {
      Picoseconds since(resource.busy_since);
      visitor.Began(since);
      resource.busy_since = since.value();
    }
    visitor.Counter(resource.busy);
    visitor.Counter(resource.carried);
    visitor.Counter(resource.lent);
    visitor.Counter(resource.charged);
    visitor.Counter(resource.ended);
    visitor.Counter(resource.population);
  }
  if (!visitor.moves()) return;
  for (Resource& resource : resources_) Balance(resource);
  now_ += visitor.by().value();
  heap_.clear();
  for (const Flow* flow : flows) {
    if (flow->finish == kNever) continue;
    heap_.push_back(
        {flow->finish, flow->sequence, static_cast<uint32_t>(flow - flows_.data()), flow->version});
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<HeapEntry>());
}

}  // namespace tpusim::flow
