// Transfers as flows of a fluid.
//
// A transfer in tpusim is not a sequence of packets but a flow: an amount of bytes that drains at a
// rate. It uses resources along its way (a link, both memories, a network card), each of which
// carries so many units per second, and consumes `weight` units of the resource per byte. At every
// moment all flows have their max-min fair rates (see max_min.h), so a transfer's duration is the
// sum over the times of constant rate, and the only events are starts and ends. Contention is exact
// at this level and costs a few operations instead of one event per packet.
//
// Three rules keep it fast and exact:
//  - All changes of one instant are solved together, when that instant is over
//    (Solve, or by itself when time moves on or a result is asked for).
//  - Only what a change does affect is solved again. A resource that its flows'
//    caps cannot fill couples nothing. (A flow's cap is its own, or what the
//    narrowest resource on its way would give it alone.) Of those that could be
//    full, the flows on the changed ones are solved first, with the rates of all
//    others as they are. That is the answer if every flow that they meet still is at
//    its cap or among the fastest on a full resource, which makes rates max-min
//    fair; flows of which that is not true are solved with them, until it is.
//  - A flow's completion time is computed when its rate changes, and then stays.
//    Times are whole picoseconds, rounded to nearest like TransferTime: a flow
//    alone takes exactly TransferTime(bytes, rate), but at least 1 ps.
//
// How to call:
//
//   Network net;
//   ResourceId hbm = net.AddResource("chip0.hbm", BytesPerSecond(819e9));
//   net.Start(now, {.amount = 1e6, .rate_cap = 100e9, .uses = {{hbm, 1.0}}, .tag = 7});
//   while (auto t = net.NextCompletion())
//     for (const Completed& done : net.Advance(*t)) ...   // may Start more flows
//
// Time never runs backwards. now() is the latest time that the network was told; getters speak of
// that moment.
//
// The room answers how transfers share bandwidth, without SystemC; `Network` is its entry point.
// Packets were rejected, which take an event each. Capacities that change during a run were
// removed: a link that is slow or dead has its rate from the start (sim/impairments).
#ifndef TPUSIM_MODELS_FLOW_NETWORK_H_
#define TPUSIM_MODELS_FLOW_NETWORK_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "configs/units.h"
#include "models/flow/max_min.h"
#include "models/steady/state.h"

namespace tpusim::flow {

struct ResourceId {
  uint32_t value = 0;
  auto operator<=>(const ResourceId&) const = default;
};

// Names a flow while it is active; slots are reused, generations are not.
struct FlowId {
  uint32_t slot = 0;
  uint32_t generation = 0;
  auto operator<=>(const FlowId&) const = default;
};

struct ResourceUse {
  ResourceId resource;
  double weight = 1;  // units of the resource per byte moved, >= 0
};

struct FlowSpec {
  double amount = 0;                                          // bytes, >= 0
  double rate_cap = std::numeric_limits<double>::infinity();  // bytes/s, > 0
  std::vector<ResourceUse> uses;  // a resource named twice counts with both weights
  uint64_t tag = 0;       // the caller's
};

struct Completed {
  FlowId id;
  uint64_t tag = 0;
  Picoseconds time;
  Picoseconds limited{0};  // of its time: that in which a resource of TimeLimits limited it
};

// Counts of the work that the network has done; for tests and benchmarks.
struct NetworkStatistics {
  uint64_t started = 0;
  uint64_t completed = 0;
  uint64_t solves = 0;        // instants with changes
  uint64_t flows_solved = 0;  // flows whose rates were solved in them
  uint64_t rate_changes = 0;
  // Seconds that flows took over resources of CountSharing, and that they would have taken alone.
  double in_flight = 0, alone = 0;

  // The part of their time that others on the same resources took; 0 to 1.
  double Sharing() const { return in_flight > 0 ? std::max(0.0, 1 - alone / in_flight) : 0; }
};

class Network {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // Called when an instant is solved, once per resource whose rate differs from
  // what was last reported, in order of ids.
  using RateObserver = std::function<void(ResourceId, Picoseconds, double units_per_second)>;

  ResourceId AddResource(std::string name, double capacity_per_second);
  ResourceId AddResource(std::string name, BytesPerSecond capacity) {
    return AddResource(std::move(name), capacity.value());
  }

  // Makes Completed::limited of every flow count the time in which this resource is the first on
  // its way that limits it.
  void TimeLimits(ResourceId id) { resources_[id.value].times_limits = true; }
  // Flows over this resource count for what NetworkStatistics says of sharing.
  void CountSharing(ResourceId id) { resources_[id.value].counts_sharing = true; }

  // Amount 0 completes at `now`; the next Advance returns it.
  FlowId Start(Picoseconds now, const FlowSpec& spec) {
    return Start(now, spec.amount, spec.rate_cap, spec.uses, spec.tag);
  }
  FlowId Start(Picoseconds now, double amount, double rate_cap, std::span<const ResourceUse> uses,
               uint64_t tag);
  // Ends a flow before its time; it does not complete. Counters take what has moved by now, or
  // `moved` bytes, for a flow in place of others whose bytes its caller knows. Returns its tag.
  uint64_t Stop(Picoseconds now, FlowId id, std::optional<double> moved = std::nullopt);

  // Ends the instant `now`: gives every affected flow its rate. Calling it is
  // optional, and calling it twice changes nothing.
  void Solve(Picoseconds now);
  // Returns when the next flow completes, if nothing else starts; none if no flow is active or all
  // are stalled.
  std::optional<Picoseconds> NextCompletion();
  // Moves time to `now`: all flows that completed since the last call, ordered
  // by completion time, then by start order. They are valid until the next call.
  const std::vector<Completed>& Advance(Picoseconds now);

  Picoseconds now() const { return Picoseconds(now_); }
  size_t active_flows() const { return active_; }
  bool IsActive(FlowId id) const;
  double Rate(FlowId id);             // bytes/s
  double Remaining(FlowId id) const;  // bytes
  // Returns what remains without solving what has changed at `now`: 0 if the flow ends by then.
  double RemainingAt(Picoseconds now, FlowId id) const;

  // Shows the state at the end of the instant `now`; `describe` shows what a flow means
  // to what started it, by its tag, and flows over the same resources are shown in the `order`
  // of their tags. When the visitor moves time, the network's time has moved afterwards.
  void Visit(Picoseconds now, const std::function<void(uint64_t tag)>& describe,
             const std::function<int64_t(uint64_t tag)>& order, steady::StateVisitor& visitor);

  size_t resources() const { return resources_.size(); }
  const std::string& Name(ResourceId id) const { return ledgers_[id.value].name; }
  double Capacity(ResourceId id) const { return resources_[id.value].capacity; }
  double Rate(ResourceId id);           // units/s
  double Carried(ResourceId id) const;  // units since time 0
  double CarriedUntil(Picoseconds now, ResourceId id) {
    CatchUp(now.value());
    return Carried(id);
  }
  // Seconds that all flows which have started take of it, those that move included.
  double Demand(ResourceId id) const;
  void SetRateObserver(RateObserver observer) { observer_ = std::move(observer); }

  // A module that depends on the conditions on a resource has it watched: TakeChanged names
  // the watched resources on which a flow has started, ended or changed its rate
  // since it was asked last, each once.
  void Watch(ResourceId id, bool on) { resources_[id.value].watched = on; }
  std::vector<ResourceId> TakeChanged();
  // Starts and ends of flows on a resource so far.
  uint64_t Population(ResourceId id) const { return resources_[id.value].population; }
  // Returns the rates of all flows on the resource but one, units/s, as last solved.
  double OtherRates(ResourceId id, FlowId but) const;
  // Returns when the first of them completes, as things are; kNever if none does.
  Picoseconds NextOtherCompletion(ResourceId id, FlowId but) const;

  // Returns what is wrong with the counters, or the empty string: every unit charged by a started
  // flow has been carried or is still to come, and no resource carried more than its capacity
  // allowed (up to the rounding of times: 1 ps per flow).
  std::string CheckConservation() const;
  const NetworkStatistics& statistics() const { return statistics_; }

 private:
  struct FlowUse {
    uint32_t resource = 0;
    uint32_t position = 0;  // in the resource's users
    double weight = 0;
  };
  // Flows and resources are thousands in a large pod, so the members that are read most stand
  // first, on few cache lines.
  struct Flow {
    uint32_t version = 0;  // of `finish`; older heap entries are dead
    uint32_t generation = 0;
    uint64_t visited = 0;  // epoch
    uint64_t checked = 0;  // number of the check among those that stay as they are
    uint32_t local = 0;    // index in the system being solved
    uint32_t bottleneck = 0;  // the use that was one when it was last looked for
    bool active = false;
    bool limited_by_timed = false;  // since `settled`
    double remaining = 0;           // bytes, at `settled`
    double rate = 0;                // bytes/s, since `settled`
    double limit = 0;               // with what each resource would give it alone
    int64_t settled = 0;
    int64_t finish = kNever;
    absl::InlinedVector<FlowUse, 4> uses;
    uint64_t tag = 0;
    uint64_t sequence = 0;  // start order
    double amount = 0;      // of all
    double cap = 0;         // its own
    int64_t started = 0;
    int64_t limited = 0;  // ps, up to `settled`
  };
  struct User {
    uint32_t flow = 0;
    uint32_t use = 0;  // index in the flow's uses
  };
  struct Resource {
    double capacity = 0;
    double limit_sum = 0;  // of weight * limit over the users
    uint32_t edits = 0;    // of limit_sum since it was summed afresh
    uint32_t local = 0;    // index in the system being solved
    bool binding = false;  // could be full; as of the last solve
    bool marked = false;   // in marked_
    bool rate_marked = false;
    bool watched = false;
    bool times_limits = false;
    bool counts_sharing = false;
    bool changed = false;  // in changed_
    bool in_system = false;
    absl::InlinedVector<User, 2> users;
    uint64_t merged = 0;      // sequence of the last flow started on it
    double carried = 0;       // up to each user's `settled`
    double charged = 0;       // sum of weight * amount over all flows started
    uint64_t ended = 0;       // flows
    uint64_t population = 0;  // starts and ends
  };
  // Members of a resource that are rarely read.
  struct Ledger {
    std::string name;
    double reported_rate = 0;
    double lent = 0;     // of carried: booked by Stop beyond what the flow had moved
  };
  struct HeapEntry {
    int64_t time = 0;
    uint64_t sequence = 0;
    uint32_t slot = 0;
    uint32_t version = 0;
    bool operator>(const HeapEntry& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  // Processes everything up to `now`, solving the instants before it.
  void CatchUp(int64_t now);
  void SolvePending();
  // The system being solved: AddToSystem for every flow, then SolveSystem; then
  // true if the rates hold among all others, else some of them were added.
  void AddToSystem(uint32_t slot);
  void SolveSystem();
  bool SystemHolds();
  bool HasBottleneck(Flow& flow, double rate);
  // Returns whether a resource of TimeLimits limits the flow at this rate, as just solved.
  bool LimitedByTimed(const Flow& flow, double rate) const;
  double NewRate(const Flow& flow) const {
    return flow.visited == epoch_ ? component_rates_[flow.local] : flow.rate;
  }
  void FinishFlow(uint32_t slot, int64_t time);
  void RemoveFlow(uint32_t slot);
  double LimitOf(const Flow& flow) const;
  void AddLimit(uint32_t resource, double delta);
  void SetRate(uint32_t slot, double rate);
  void SetFinish(uint32_t slot);  // from what is left at `settled`
  void VisitFlow(Flow& flow, steady::StateVisitor& visitor);
  double ToCome(const Resource& resource) const;  // of what is charged, beyond `carried`
  // Sets what was carried to what was charged less what is to come, after time has moved over
  // periods that were nearly the same.
  void Balance(Resource& resource) const;
  void Settle(Flow& flow);
  void Mark(uint32_t resource);
  void MarkRate(uint32_t resource);
  void Changed(Resource& resource, uint32_t id);
  void Report();
  double SumOfRates(const Resource& resource) const;
  void PruneHeap();
  const Flow& Get(FlowId id) const;


  std::vector<Resource> resources_;
  std::vector<Ledger> ledgers_;  // by resource
  std::vector<Flow> flows_;
  std::vector<uint32_t> free_slots_;
  std::vector<HeapEntry> heap_;
  std::vector<Completed> completed_;  // not yet returned by Advance
  std::vector<Completed> returned_;
  std::vector<uint32_t> marked_;     // resources changed in this instant
  std::vector<uint32_t> new_flows_;  // flows to solve whatever their resources say
  std::vector<uint32_t> rate_marked_;
  std::vector<ResourceId> changed_;
  int64_t now_ = 0;
  bool pending_ = false;  // changes at now_ are not solved yet
  size_t active_ = 0;
  uint64_t sequence_ = 0;
  uint64_t epoch_ = 0;
  uint64_t checks_ = 0;
  RateObserver observer_;
  NetworkStatistics statistics_;

  // The system being solved: flows, and resources that could be full.
  MaxMinSolver solver_;
  std::vector<uint32_t> component_;
  std::vector<uint32_t> component_resources_;
  struct Load {
    double rate = 0;     // of all users
    double fastest = 0;  // among them
    bool full = false;
  };
  Load LoadOf(const Resource& resource) const;
  // Returns the load of a resource that no flow of the system uses; it stays until that system is
  // solved.
  const Load& LoadBeside(uint32_t resource);
  std::vector<Load> component_loads_;
  struct LoadBesideSystem {
    uint64_t epoch = 0;  // of the system
    Load load;
  };
  std::vector<LoadBesideSystem> loads_beside_;  // by resource
  std::vector<uint32_t> candidates_;
  std::vector<double> component_capacity_;
  std::vector<double> component_cap_;
  std::vector<uint32_t> component_use_begin_;
  std::vector<MaxMinUse> component_uses_;
  std::vector<double> component_rates_;
};

}  // namespace tpusim::flow

#endif  // TPUSIM_MODELS_FLOW_NETWORK_H_
