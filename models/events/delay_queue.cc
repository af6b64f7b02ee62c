#include "models/events/delay_queue.h"

#include <algorithm>
#include <functional>

#include "configs/status_macros.h"
#include "models/events/sim_time.h"

namespace tpusim::events {

DelayQueue::DelayQueue(sc_core::sc_module_name name, DelayListener* listener)
    : sc_module(name), listener_(listener) {
  SC_HAS_PROCESS(DelayQueue);
  SC_METHOD(Fire);
  sensitive << due_;
  dont_initialize();
}

void DelayQueue::Push(Picoseconds at, uint64_t tag) {
  const Picoseconds now = Now();
  TPUSIM_CHECK(at >= now, "a delay ends before it began");
  heap_.push_back({at, ++sequence_, tag});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  // An earlier notification overrides a later one that is pending, and a later
  // one is dropped: SystemC's rule is the one we need.
  due_.notify(ScTime(at - now));
}

void DelayQueue::Fire() {
  const Picoseconds now = Now();
  while (!heap_.empty() && heap_.front().at <= now) {
    const uint64_t tag = heap_.front().tag;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    listener_->DelayEnded(tag);
  }
  if (!heap_.empty()) due_.notify(ScTime(heap_.front().at - now));
}

void DelayQueue::Visit(steady::StateVisitor& visitor) {
  // From the earliest on, in an order that does not depend on which was first within an instant.
  std::vector<PendingDelay*> entries;
  for (PendingDelay& entry : heap_) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [this](const PendingDelay* a, const PendingDelay* b) {
    if (a->at != b->at) return a->at < b->at;
    const int64_t first = listener_->OrderOf(a->tag), second = listener_->OrderOf(b->tag);
    return first != second ? first < second : a->sequence < b->sequence;
  });
  visitor.Same(static_cast<int64_t>(entries.size()));
  for (PendingDelay* entry : entries) {
    visitor.Pending(entry->at);
    listener_->VisitDelay(entry->tag, visitor);
  }
  if (!visitor.moves() || heap_.empty()) return;
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  due_.cancel();
  due_.notify(ScTime(heap_.front().at - Now()));
}

}  // namespace tpusim::events
