#include "models/flow/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::flow {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;
// Rates of flows that were solved at different times are equal, and a resource that
// they fill is full, up to this.
constexpr double kBalance = 4e-12;

double Seconds(int64_t picoseconds) { return static_cast<double>(picoseconds) / 1e12; }

bool SameRate(double a, double b) {
  return std::abs(a - b) <= kRateTolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

ResourceId Network::AddResource(std::string name, double capacity_per_second) {
  TPUSIM_CHECK(capacity_per_second >= 0 && std::isfinite(capacity_per_second),
               fmt::format("capacity of {} is {}", name, capacity_per_second));
  resources_.emplace_back().capacity = capacity_per_second;
  ledgers_.push_back({.name = std::move(name)});
  return ResourceId{static_cast<uint32_t>(resources_.size() - 1)};
}

FlowId Network::Start(Picoseconds now, double amount, double rate_cap,
                      std::span<const ResourceUse> uses, uint64_t tag) {
  TPUSIM_CHECK(amount >= 0 && std::isfinite(amount), fmt::format("amount of a flow is {}", amount));
  TPUSIM_CHECK(rate_cap > 0, fmt::format("rate cap of a flow is {}", rate_cap));
  CatchUp(now.value());
  uint32_t slot;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  Flow& flow = flows_[slot];
  flow.sequence = ++sequence_;
  flow.tag = tag;
  ++statistics_.started;
  const FlowId id{slot, flow.generation};
  if (amount == 0) {
    ++flow.generation;
    free_slots_.push_back(slot);
    completed_.push_back({id, tag, now});
    ++statistics_.completed;
    return id;
  }

  flow.active = true;
  ++active_;
  flow.remaining = flow.amount = amount;
  flow.rate = 0;
  flow.cap = rate_cap;
  flow.started = flow.settled = now_;
  flow.finish = kNever;
  flow.limited = 0;
  flow.limited_by_timed = false;
  flow.uses.clear();
  for (const ResourceUse& use : uses) {
    TPUSIM_CHECK(use.resource.value < resources_.size(), "a flow uses an unknown resource");
    TPUSIM_CHECK(use.weight >= 0 && std::isfinite(use.weight),
                 fmt::format("weight on {} is {}", Name(use.resource), use.weight));
    if (use.weight == 0) continue;
    Resource& resource = resources_[use.resource.value];
    if (resource.merged == flow.sequence) {
      auto same = std::find_if(flow.uses.begin(), flow.uses.end(), [&](const FlowUse& other) {
        return other.resource == use.resource.value;
      });
      same->weight += use.weight;
      continue;
    }
    resource.merged = flow.sequence;
    flow.uses.push_back({use.resource.value, 0, use.weight});
  }
  TPUSIM_CHECK(std::isfinite(rate_cap) || !flow.uses.empty(),
               "a flow without rate cap and without resource would be infinitely fast");
  flow.limit = LimitOf(flow);
  for (uint32_t u = 0; u < flow.uses.size(); ++u) {
    FlowUse& use = flow.uses[u];
    Resource& resource = resources_[use.resource];
    use.position = static_cast<uint32_t>(resource.users.size());
    resource.users.push_back({slot, u});
    resource.charged += use.weight * amount;
    ++resource.population;
    Changed(resource, use.resource);
    AddLimit(use.resource, use.weight * flow.limit);
    Mark(use.resource);
  }
  new_flows_.push_back(slot);
  pending_ = true;
  return id;
}

void Network::Solve(Picoseconds now) {
  CatchUp(now.value());
  SolvePending();
}

std::optional<Picoseconds> Network::NextCompletion() {
  if (!completed_.empty()) return completed_.front().time;
  SolvePending();
  PruneHeap();
  if (heap_.empty()) return std::nullopt;
  return Picoseconds(heap_.front().time);
}

const std::vector<Completed>& Network::Advance(Picoseconds now) {
  CatchUp(now.value());
  returned_.clear();
  returned_.swap(completed_);
  return returned_;
}

void Network::CatchUp(int64_t now) {
  TPUSIM_CHECK(now >= now_, fmt::format("time runs backwards: {} ps after {} ps", now, now_));
  for (;;) {
    if (now > now_) SolvePending();
    PruneHeap();
    if (heap_.empty() || heap_.front().time > now) break;
    now_ = heap_.front().time;
    while (!heap_.empty() && heap_.front().time == now_) {
      const uint32_t slot = heap_.front().slot;
      FinishFlow(slot, now_);
      PruneHeap();
    }
  }
  now_ = now;
}

void Network::PruneHeap() {
  while (!heap_.empty() && flows_[heap_.front().slot].version != heap_.front().version) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<HeapEntry>());
    heap_.pop_back();
  }
}

void Network::FinishFlow(uint32_t slot, int64_t time) {
  Flow& flow = flows_[slot];
  bool shares = false;
  for (const FlowUse& use : flow.uses) {
    // All that was left, whatever the rounding of the time: amounts add up.
    resources_[use.resource].carried += use.weight * flow.remaining;
    shares = shares || resources_[use.resource].counts_sharing;
  }
  if (shares && flow.limit > 0) {
    statistics_.in_flight += ToSeconds(Picoseconds(time - flow.started));
    statistics_.alone += flow.amount / flow.limit;
  }
  const int64_t limited = flow.limited + (flow.limited_by_timed ? time - flow.settled : 0);
  completed_.push_back(
      {FlowId{slot, flow.generation}, flow.tag, Picoseconds(time), Picoseconds(limited)});
  ++statistics_.completed;
  RemoveFlow(slot);
}

uint64_t Network::Stop(Picoseconds now, FlowId id, std::optional<double> moved) {
  CatchUp(now.value());
  TPUSIM_CHECK(IsActive(id), "a flow that has completed was stopped");
  Flow& flow = flows_[id.slot];
  Settle(flow);
  if (moved) {
    const double more = *moved - (flow.amount - flow.remaining);
    for (const FlowUse& use : flow.uses) {
      resources_[use.resource].carried += use.weight * more;
      ledgers_[use.resource].lent += use.weight * std::max(0.0, more);
    }
    flow.remaining = flow.amount - *moved;
  }
  for (const FlowUse& use : flow.uses) {
    resources_[use.resource].charged -= use.weight * flow.remaining;
  }
  ++statistics_.completed;
  RemoveFlow(id.slot);
  return flow.tag;
}

void Network::RemoveFlow(uint32_t slot) {
  Flow& flow = flows_[slot];
  for (const FlowUse& use : flow.uses) {
    Resource& resource = resources_[use.resource];
    ++resource.ended;
    ++resource.population;
    Changed(resource, use.resource);
    const User last = resource.users.back();
    resource.users[use.position] = last;
    flows_[last.flow].uses[last.use].position = use.position;
    resource.users.pop_back();
    AddLimit(use.resource, -use.weight * flow.limit);
    Mark(use.resource);
    MarkRate(use.resource);
  }
  --active_;
  flow.active = false;
  flow.rate = 0;
  flow.remaining = 0;
  ++flow.version;
  ++flow.generation;
  free_slots_.push_back(slot);
  pending_ = true;
}

double Network::LimitOf(const Flow& flow) const {
  double limit = flow.cap;
  for (const FlowUse& use : flow.uses) {
    limit = std::min(limit, resources_[use.resource].capacity / use.weight);
  }
  return limit;
}

void Network::AddLimit(uint32_t resource, double delta) {
  resources_[resource].limit_sum += delta;
  ++resources_[resource].edits;
}

void Network::Mark(uint32_t resource) {
  if (std::exchange(resources_[resource].marked, true)) return;
  marked_.push_back(resource);
}

void Network::MarkRate(uint32_t resource) {
  if (!observer_ || std::exchange(resources_[resource].rate_marked, true)) return;
  rate_marked_.push_back(resource);
}

void Network::Changed(Resource& resource, uint32_t id) {
  if (!resource.watched || std::exchange(resource.changed, true)) return;
  changed_.push_back(ResourceId{id});
}

std::vector<ResourceId> Network::TakeChanged() {
  for (const ResourceId id : changed_) resources_[id.value].changed = false;
  return std::exchange(changed_, {});
}

void Network::SolvePending() {
  if (!pending_) return;
  pending_ = false;
  ++statistics_.solves;
  ++epoch_;
  // What could be full now, and what could before: both couple their users to the change.
  size_t kept = 0;
  for (const uint32_t r : marked_) {
    Resource& resource = resources_[r];
    resource.marked = false;
    // A sum that is only ever added to and subtracted from drifts.
    if (resource.edits > resource.users.size() + 64 || resource.users.empty()) {
      resource.edits = 0;
      resource.limit_sum = 0;
      for (const User& user : resource.users) {
        const Flow& flow = flows_[user.flow];
        resource.limit_sum += flow.uses[user.use].weight * flow.limit;
      }
    }
    const bool was = resource.binding;
    resource.binding = resource.limit_sum > resource.capacity * (1 + kRateTolerance);
    if (was || resource.binding) marked_[kept++] = r;
  }
  marked_.resize(kept);
  component_.clear();
  for (const uint32_t slot : new_flows_) {
    // A flow may have ended in the instant in which something made it new.
    if (flows_[slot].active) AddToSystem(slot);
  }
  for (const uint32_t r : marked_) {
    for (const User& user : resources_[r].users) AddToSystem(user.flow);
  }
  new_flows_.clear();
  marked_.clear();
  if (!component_.empty()) {
    do {
      SolveSystem();
    } while (!SystemHolds());
    statistics_.flows_solved += component_.size();
    for (size_t i = 0; i < component_.size(); ++i) SetRate(component_[i], component_rates_[i]);
  }
  if (observer_) Report();
  // Dead entries must not outgrow the living.
  if (heap_.size() > 2 * active_ + 64) {
    std::erase_if(heap_, [this](const HeapEntry& entry) {
      return flows_[entry.slot].version != entry.version;
    });
    std::make_heap(heap_.begin(), heap_.end(), std::greater<HeapEntry>());
  }
}

void Network::AddToSystem(uint32_t slot) {
  Flow& flow = flows_[slot];
  if (std::exchange(flow.visited, epoch_) == epoch_) return;
  flow.local = static_cast<uint32_t>(component_.size());
  component_.push_back(slot);
}

void Network::SolveSystem() {
  for (const uint32_t r : component_resources_) resources_[r].in_system = false;
  component_resources_.clear();
  component_capacity_.clear();
  component_cap_.clear();
  component_use_begin_.clear();
  component_uses_.clear();
  for (const uint32_t slot : component_) {
    const Flow& flow = flows_[slot];
    component_cap_.push_back(flow.limit);
    component_use_begin_.push_back(static_cast<uint32_t>(component_uses_.size()));
    for (const FlowUse& use : flow.uses) {
      Resource& resource = resources_[use.resource];
      if (!resource.binding) continue;
      if (!std::exchange(resource.in_system, true)) {
        resource.local = static_cast<uint32_t>(component_resources_.size());
        component_resources_.push_back(use.resource);
        // What the others leave.
        double left = resource.capacity;
        for (const User& user : resource.users) {
          const Flow& other = flows_[user.flow];
          if (other.visited != epoch_) left -= other.uses[user.use].weight * other.rate;
        }
        component_capacity_.push_back(std::max(0.0, left));
      }
      component_uses_.push_back({resource.local, use.weight});
    }
  }
  component_rates_.resize(component_.size());
  if (component_resources_.empty()) {  // as fast as they can
    component_rates_ = component_cap_;
    return;
  }
  component_use_begin_.push_back(static_cast<uint32_t>(component_uses_.size()));
  solver_.Solve({component_capacity_, component_cap_, component_use_begin_, component_uses_},
                component_rates_);
}

Network::Load Network::LoadOf(const Resource& resource) const {
  Load load;
  for (const User& user : resource.users) {
    const Flow& flow = flows_[user.flow];
    const double rate = NewRate(flow);
    load.rate += flow.uses[user.use].weight * rate;
    load.fastest = std::max(load.fastest, rate);
  }
  load.full = load.rate >= resource.capacity * (1 - kBalance);
  return load;
}

const Network::Load& Network::LoadBeside(uint32_t resource) {
  loads_beside_.resize(resources_.size());
  LoadBesideSystem& known = loads_beside_[resource];
  if (std::exchange(known.epoch, epoch_) != epoch_) known.load = LoadOf(resources_[resource]);
  return known.load;
}

bool Network::HasBottleneck(Flow& flow, double rate) {
  if (rate >= flow.limit * (1 - kBalance)) return true;
  const auto is_bottleneck = [&](const FlowUse& use) {
    const Resource& resource = resources_[use.resource];
    if (!resource.binding) return false;
    const Load& load =
        resource.in_system ? component_loads_[resource.local] : LoadBeside(use.resource);
    return load.full && rate >= load.fastest * (1 - kBalance);
  };
  // Mostly what it was.
  if (flow.bottleneck < flow.uses.size() && is_bottleneck(flow.uses[flow.bottleneck])) return true;
  for (uint32_t u = 0; u < flow.uses.size(); ++u) {
    if (!is_bottleneck(flow.uses[u])) continue;
    flow.bottleneck = u;
    return true;
  }
  return false;
}

bool Network::LimitedByTimed(const Flow& flow, double rate) const {
  const auto timed_on_the_way = [this](const FlowUse& use) {
    return resources_[use.resource].times_limits;
  };
  if (std::none_of(flow.uses.begin(), flow.uses.end(), timed_on_the_way)) return false;
  if (rate >= flow.cap * (1 - kBalance)) return false;
  for (const FlowUse& use : flow.uses) {
    const Resource& resource = resources_[use.resource];
    bool limits = rate >= resource.capacity / use.weight * (1 - kBalance);
    if (!limits && resource.binding) {
      const Load load = resource.in_system ? component_loads_[resource.local] : LoadOf(resource);
      limits = load.full && rate >= load.fastest * (1 - kBalance);
    }
    if (limits) return resource.times_limits;
  }
  return false;
}

bool Network::SystemHolds() {
  const size_t solved = component_.size();
  component_loads_.clear();
  for (const uint32_t r : component_resources_) component_loads_.push_back(LoadOf(resources_[r]));
  const auto add_others = [this](const Resource& resource) {
    for (const User& user : resource.users) AddToSystem(user.flow);
  };
  for (size_t i = 0; i < solved; ++i) {
    Flow& flow = flows_[component_[i]];
    if (HasBottleneck(flow, component_rates_[i])) continue;
    for (const FlowUse& use : flow.uses) {
      if (resources_[use.resource].binding) add_others(resources_[use.resource]);
    }
  }
  if (component_.size() > solved) return false;
  for (const uint32_t r : component_resources_) {
    const Resource& resource = resources_[r];
    if (component_loads_[resource.local].rate > resource.capacity * (1 + kBalance)) {
      add_others(resource);
    }
  }
  if (component_.size() > solved) return false;
  candidates_.clear();
  ++checks_;
  for (const uint32_t r : component_resources_) {
    for (const User& user : resources_[r].users) {
      Flow& other = flows_[user.flow];
      if (other.visited == epoch_ || std::exchange(other.checked, checks_) == checks_ ||
          HasBottleneck(other, other.rate)) {
        continue;
      }
      candidates_.push_back(user.flow);
    }
  }
  for (const uint32_t slot : candidates_) AddToSystem(slot);
  return component_.size() == solved;
}

void Network::Settle(Flow& flow) {
  if (flow.limited_by_timed) flow.limited += now_ - flow.settled;
  if (flow.rate > 0 && now_ > flow.settled) {
    const double moved = std::min(flow.remaining, flow.rate * Seconds(now_ - flow.settled));
    flow.remaining -= moved;
    for (const FlowUse& use : flow.uses) resources_[use.resource].carried += use.weight * moved;
  }
  flow.settled = now_;
}

void Network::SetRate(uint32_t slot, double rate) {
  Flow& flow = flows_[slot];
  if (SameRate(flow.rate, rate)) return;  // the completion time stays
  Settle(flow);
  flow.rate = rate;
  flow.limited_by_timed = LimitedByTimed(flow, rate);
  for (const FlowUse& use : flow.uses) {
    Changed(resources_[use.resource], use.resource);
    MarkRate(use.resource);
  }
  ++statistics_.rate_changes;
  SetFinish(slot);
}

void Network::SetFinish(uint32_t slot) {
  Flow& flow = flows_[slot];
  ++flow.version;
  flow.finish = kNever;
  if (flow.rate <= 0) return;
  // As TransferTime rounds.
  const double duration = std::floor(flow.remaining / flow.rate * kPicosecondsPerSecond + 0.5);
  if (duration >= static_cast<double>(kNever - flow.settled)) return;  // beyond the end of time
  flow.finish = flow.settled + std::max<int64_t>(1, static_cast<int64_t>(duration));
  heap_.push_back({flow.finish, flow.sequence, slot, flow.version});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<HeapEntry>());
}

double Network::SumOfRates(const Resource& resource) const {
  double sum = 0;
  for (const User& user : resource.users) {
    const Flow& flow = flows_[user.flow];
    sum += flow.uses[user.use].weight * flow.rate;
  }
  return std::min(sum, resource.capacity);  // the last bit of a sum is not overload
}

void Network::Report() {
  std::sort(rate_marked_.begin(), rate_marked_.end());
  for (const uint32_t r : rate_marked_) {
    Resource& resource = resources_[r];
    resource.rate_marked = false;
    const double rate = SumOfRates(resource);
    double& reported = ledgers_[r].reported_rate;
    if (SameRate(rate, reported)) continue;
    reported = rate;
    observer_(ResourceId{r}, Picoseconds(now_), rate);
  }
  rate_marked_.clear();
}

bool Network::IsActive(FlowId id) const {
  return id.slot < flows_.size() && flows_[id.slot].active &&
         flows_[id.slot].generation == id.generation;
}

const Network::Flow& Network::Get(FlowId id) const {
  TPUSIM_CHECK(IsActive(id), "the flow has completed");
  return flows_[id.slot];
}

double Network::Rate(FlowId id) {
  SolvePending();
  return Get(id).rate;
}

double Network::Remaining(FlowId id) const {
  const Flow& flow = Get(id);
  return std::max(0.0, flow.remaining - flow.rate * Seconds(now_ - flow.settled));
}

double Network::RemainingAt(Picoseconds now, FlowId id) const {
  if (!IsActive(id)) return 0;
  const Flow& flow = flows_[id.slot];
  if (flow.finish <= now.value()) return 0;
  return std::max(0.0, flow.remaining - flow.rate * Seconds(now.value() - flow.settled));
}

double Network::OtherRates(ResourceId id, FlowId but) const {
  double sum = 0;
  for (const User& user : resources_[id.value].users) {
    const Flow& flow = flows_[user.flow];
    if (user.flow == but.slot && flow.generation == but.generation) continue;
    sum += flow.uses[user.use].weight * flow.rate;
  }
  return sum;
}

Picoseconds Network::NextOtherCompletion(ResourceId id, FlowId but) const {
  int64_t next = kNever;
  for (const User& user : resources_[id.value].users) {
    const Flow& flow = flows_[user.flow];
    if (user.flow == but.slot && flow.generation == but.generation) continue;
    next = std::min(next, flow.finish);
  }
  return Picoseconds(next);
}

double Network::Rate(ResourceId id) {
  SolvePending();
  return SumOfRates(resources_[id.value]);
}

}  // namespace tpusim::flow
