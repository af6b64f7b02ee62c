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
                    const std::function<int64_t(uint64_t tag)>& order,
                    steady::StateVisitor& visitor) {
  Solve(now);
  TPUSIM_CHECK(completed_.empty(), "the instant is not over: a flow has yet to be told of its end");
  std::vector<Flow*> flows;
  flows.reserve(active_);
  for (Flow& flow : flows_) {
    if (flow.active) flows.push_back(&flow);
  }
  // By what they are, not by which was first: the flows of devices that are independent of each
  // other start in any order, and in another one when states recur that are nearly the same.
  std::sort(flows.begin(), flows.end(), [&](const Flow* a, const Flow* b) {
    const auto resources = std::lexicographical_compare_three_way(
        a->uses.begin(), a->uses.end(), b->uses.begin(), b->uses.end(),
        [](const FlowUse& x, const FlowUse& y) { return x.resource <=> y.resource; });
    if (resources != 0) return resources < 0;
    const int64_t first = order(a->tag), second = order(b->tag);
    if (first != second) return first < second;
    return a->started != b->started ? a->started < b->started : a->sequence < b->sequence;
  });
  visitor.Same(static_cast<int64_t>(flows.size()));
  for (Flow* flow : flows) {
    describe(flow->tag);
    VisitFlow(*flow, visitor);
  }
  for (size_t r = 0; r < resources_.size(); ++r) {
    Resource& resource = resources_[r];
    visitor.Counter(resource.carried);
    visitor.Counter(ledgers_[r].lent);
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
