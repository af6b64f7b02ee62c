// The fluid: every transfer of the pod as one SystemC module.
//
// Memories, links, PCIe and network cards are resources of one flow::Network
// (what a flow is, and how rates follow, is said there). Fluid puts that network
// on SystemC's time line: it keeps exactly one timed notification pending, for
// the next completion, and nothing while no flow is active.
//
// Rates of one instant are solved once, after the last start or end of it. Ends wake streams,
// streams start flows, and so on over several delta cycles; the solver runs when nothing else is
// left to do in the instant, or after the first delta cycle in which nothing started or ended. If a
// longer chain of zero-time control comes back later in the same instant, it runs again, with the
// same result as if it had waited, because no time has passed. So the order of modules within an
// instant never reaches a rate.
//
// How to call: add resources to network() while building; then Start with a
// listener, which is called at the flow's end. Listeners of flows that end
// together are called in the order in which the flows started.
//
// The room answers when the next thing happens, on SystemC's clock; it knows no hardware, and
// `Fluid` is its entry point. Solving the rates a fixed two delta cycles after every start and end
// was tried and rejected: mostly nothing was left to wait for. A SystemC process per stream is
// avoided likewise (run_queue.h).
#ifndef TPUSIM_MODELS_EVENTS_FLUID_H_
#define TPUSIM_MODELS_EVENTS_FLUID_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <systemc>
#include <vector>

#include "models/events/faults.h"
#include "models/flow/network.h"
#include "models/steady/state.h"

namespace tpusim::events {

class FlowListener {
 public:
  virtual void FlowEnded(uint64_t tag) = 0;
  // Shows what the flow of this tag is for.
  virtual void VisitFlow(uint64_t tag, steady::StateVisitor& visitor) = 0;
  // Among flows over the same resources, the order in which they are shown.
  virtual int64_t OrderOfFlow(uint64_t tag) const = 0;

 protected:
  ~FlowListener() = default;
};

// A module that relies on the conditions on a resource.
class ConditionsListener {
 public:
  // Called after rates have been solved: a flow on the resource has started, ended or changed its
  // rate.
  virtual void ConditionsChanged() = 0;

 protected:
  ~ConditionsListener() = default;
};

// Hears the end of every instant in which a flow started or ended, before rates are solved.
class SettleListener {
 public:
  virtual void InstantSettled() = 0;

 protected:
  ~SettleListener() = default;
};

class Fluid : public sc_core::sc_module, public steady::Stateful {
 public:
  explicit Fluid(sc_core::sc_module_name name);
  Fluid(const Fluid&) = delete;

  flow::Network& network() { return network_; }
  const flow::Network& network() const { return network_; }

  // Starts a flow now. An amount of zero ends in this instant.
  flow::FlowId Start(double bytes, double rate_cap, std::span<const flow::ResourceUse> uses,
                     FlowListener* listener, uint64_t tag);
  // Bytes that have yet to move, now; 0 if it ends now.
  double Remaining(flow::FlowId id) const;
  // Ends a flow that has bytes to move, without telling its listener; counters
  // take `moved`, or what has moved.
  void Stop(flow::FlowId id, std::optional<double> moved = std::nullopt);
  // One listener per resource; null: none.
  void Watch(flow::ResourceId id, ConditionsListener* listener);

  // Sets the listener; null: none.
  void SetSettleListener(SettleListener* listener) { settle_listener_ = listener; }
  void Visit(steady::StateVisitor& visitor) override;

  // Returns how long a memory limited the flow whose listener is being called.
  Picoseconds limited_by_memory() const { return limited_by_memory_; }

  // Flow starts and ends so far.
  int64_t events() const { return events_; }
  // The simulation ends with RESOURCE_EXHAUSTED, told to `faults`, once so many more have been
  // counted.
  void LimitEvents(int64_t events, Faults& faults) {
    most_events_ = events_ + events;
    faults_ = &faults;
  }

 private:
  struct Active {
    FlowListener* listener = nullptr;
    uint64_t tag = 0;
  };

  void Changed();
  void Settle();    // after the changes of an instant
  void Schedule();  // the next completion
  void Complete();  // at the time of the next completion

  flow::Network network_;
  std::vector<Active> active_;  // indexed by the network's tag
  std::vector<uint32_t> free_;
  std::vector<ConditionsListener*> watchers_;  // by resource
  sc_core::sc_event changed_;
  sc_core::sc_event completion_;
  SettleListener* settle_listener_ = nullptr;
  bool changed_since_ = false;
  bool settles_ = false;       // changed_ is notified, or Settle follows
  Picoseconds scheduled_{-1};  // of completion_; -1 = none
  Picoseconds limited_by_memory_{0};
  int64_t events_ = 0;
  int64_t most_events_ = std::numeric_limits<int64_t>::max();
  Faults* faults_ = nullptr;  // null: any number
};

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_FLUID_H_
