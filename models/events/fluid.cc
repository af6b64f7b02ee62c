#include "models/events/fluid.h"

#include <algorithm>
#include <utility>

#include "models/events/sim_time.h"

namespace tpusim::events {

Fluid::Fluid(sc_core::sc_module_name name) : sc_module(name) {
  SC_HAS_PROCESS(Fluid);
  SC_METHOD(Settle);
  sensitive << changed_;
  dont_initialize();
  SC_METHOD(Complete);
  sensitive << completion_;
  dont_initialize();
}

flow::FlowId Fluid::Start(double bytes, double rate_cap, std::span<const flow::ResourceUse> uses,
                          FlowListener* listener, uint64_t tag) {
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(active_.size());
    active_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  active_[slot] = {listener, tag};
  if (++events_ > most_events_) faults_->Report(absl::ResourceExhaustedError("too many flows"));
  const flow::FlowId id = network_.Start(Now(), bytes, rate_cap, uses, slot);
  Changed();
  return id;
}

double Fluid::Remaining(flow::FlowId id) const { return network_.RemainingAt(Now(), id); }

void Fluid::Stop(flow::FlowId id, std::optional<double> moved) {
  free_.push_back(static_cast<uint32_t>(network_.Stop(Now(), id, moved)));
  ++events_;
  Changed();
}

void Fluid::Watch(flow::ResourceId id, ConditionsListener* listener) {
  if (watchers_.size() <= id.value) watchers_.resize(id.value + 1, nullptr);
  watchers_[id.value] = listener;
  network_.Watch(id, listener != nullptr);
}

void Fluid::Changed() {
  changed_since_ = true;
  if (!std::exchange(settles_, true)) changed_.notify(sc_core::SC_ZERO_TIME);
}

void Fluid::Settle() {
  settles_ = false;
  // What else happens in this instant may change more.
  if (std::exchange(changed_since_, false) && sc_core::sc_pending_activity_at_current_time()) {
    settles_ = true;
    changed_.notify(sc_core::SC_ZERO_TIME);
    return;
  }
  if (settle_listener_ != nullptr) settle_listener_->InstantSettled();
  network_.Solve(Now());
  for (const flow::ResourceId id : network_.TakeChanged()) {
    if (ConditionsListener* listener = watchers_[id.value]) listener->ConditionsChanged();
  }
  if (changed_since_) return;  // by a listener
  Schedule();
}

void Fluid::Schedule() {
  const Picoseconds now = Now();
  const std::optional<Picoseconds> next = network_.NextCompletion();
  const Picoseconds at = next ? std::max(*next, now) : Picoseconds(-1);
  if (at == scheduled_) return;
  completion_.cancel();
  scheduled_ = at;
  if (next) completion_.notify(ScTime(at - now));
}

void Fluid::Visit(steady::StateVisitor& visitor) {
  network_.Visit(
      Now(),
      [&](uint64_t slot) {
        visitor.Same(active_[slot].listener);
        active_[slot].listener->VisitFlow(active_[slot].tag, visitor);
      },
      [&](uint64_t slot) { return active_[slot].listener->OrderOfFlow(active_[slot].tag); },
      visitor);
  if (visitor.moves()) Schedule();
}

void Fluid::Complete() {
  scheduled_ = Picoseconds(-1);
  settles_ = true;  // below
  for (const flow::Completed& done : network_.Advance(Now())) {
    const Active active = active_[done.tag];
    free_.push_back(static_cast<uint32_t>(done.tag));
    ++events_;
    limited_by_memory_ = done.limited;
    active.listener->FlowEnded(active.tag);
  }
  changed_since_ = true;
  if (sc_core::sc_pending_activity_at_current_time()) {
    changed_.notify(sc_core::SC_ZERO_TIME);
  } else {
    Settle();
  }
}

}  // namespace tpusim::events

// SystemC's library brings a main of its own that calls this. We have our own
// main and call sc_start from it, but the library does not link without it.
int sc_main(int, char**) { return 0; }
