#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "models/flow/max_min.h"
#include "workloads/cost/schedule_graph.h"

namespace tpusim::cost {
namespace {

using Role = ScheduleNode::Role;

// Less time than this, in ps, is rounding.
constexpr double kNothing = 1e-6;
// Nor does rounding fill a resource, or keep an operation from moving at all.
constexpr double kFull = 1 + 1e-9;
constexpr double kSlowest = 1e-9;

// Something under way.
struct Activity {
  int node = -1;
  const Work* work = nullptr;
  double latency = 0;  // ps, left
  double left = 0;     // ps, as if alone
  double speed = 1;

  Activity(int n, const Work& w)
      : node(n),
        work(&w),
        latency(static_cast<double>(w.latency.value())),
        left(static_cast<double>(w.time.value())) {}
  bool over() const { return latency <= kNothing && left <= kNothing; }
};

class Machine {
 public:
  double now() const { return now_; }
  // Returns how long resources were busy, as rates times time.
  const Shares& used() const { return used_; }
  double moved() const { return moved_; }

  void Begin(int node, const Work& work) {
    activities_.emplace_back(node, work);
    settled_ = false;
  }
  bool IsUnderWay(int node) const {
    return std::any_of(activities_.begin(), activities_.end(),
                       [node](const Activity& a) { return a.node == node; });
  }

  // To the next event. `ended` is told what is over.
  template <typename Ended>
  void Step(const Ended& ended) {
    if (!settled_) SetSpeeds();
    double until = std::numeric_limits<double>::infinity();
    for (const Activity& a : activities_) {
      until = std::min(until, a.latency > kNothing ? a.latency : a.left / a.speed);
    }
    now_ += until;
    for (Activity& a : activities_) {
      if (a.latency > kNothing) {
        a.latency -= until;
        if (a.latency <= kNothing) settled_ = false;
        continue;
      }
      const double progress = until * a.speed;
      a.left -= progress;
      moved_ += a.work->rate.value() * progress;
      for (size_t r = 0; r < kResources; ++r) used_[r] += a.work->share[r] * progress;
    }
    for (size_t n = 0; n < activities_.size();) {
      if (!activities_[n].over()) {
        ++n;
        continue;
      }
      ended(activities_[n].node);
      activities_.erase(activities_.begin() + static_cast<std::ptrdiff_t>(n));
      settled_ = false;
    }
  }

 private:
  // Sets the max-min fair rates of all that share a resource which has no room for them.
  void SetSpeeds() {
    settled_ = true;
    sharing_.clear();
    Shares wanted = {};
    for (Activity& a : activities_) {
      a.speed = 1;
      if (a.latency > kNothing || !(a.work->rate.value() > 0)) continue;
      for (size_t r = 0; r < kResources; ++r) wanted[r] += a.work->share[r];
      sharing_.push_back(&a);
    }
    if (std::all_of(wanted.begin(), wanted.end(), [](double share) { return share <= kFull; })) {
      return;
    }
    // A resource carries all of itself, and a flow takes of it what it takes alone per byte.
    static constexpr Shares kWhole = [] {
      Shares whole;
      whole.fill(1);
      return whole;
    }();
    caps_.clear();
    uses_.clear();
    use_begin_ = {0};
    for (const Activity* a : sharing_) {
      const double rate = a->work->rate.value();
      caps_.push_back(rate);
      for (size_t r = 0; r < kResources; ++r) {
        const double share = a->work->share[r];
        if (share > 0) uses_.push_back({static_cast<uint32_t>(r), share / rate});
      }
      use_begin_.push_back(static_cast<uint32_t>(uses_.size()));
    }
    rates_.resize(sharing_.size());
    solver_.Solve({kWhole, caps_, use_begin_, uses_}, rates_);
    for (size_t n = 0; n < sharing_.size(); ++n) {
      sharing_[n]->speed = std::clamp(rates_[n] / caps_[n], kSlowest, 1.0);
    }
  }

  double now_ = 0;  // ps
  Shares used_ = {};
  double moved_ = 0;
  std::vector<Activity> activities_;
  bool settled_ = true;
  // The flows of activities that use a resource, and the problem of sharing it.
  std::vector<Activity*> sharing_;
  flow::MaxMinSolver solver_;
  std::vector<double> caps_, rates_;
  std::vector<uint32_t> use_begin_;
  std::vector<flow::MaxMinUse> uses_;
};

Picoseconds Rounded(double ps) { return Picoseconds(std::llround(ps)); }

}  // namespace

ReplayResult Replay(const ScheduleGraph& graph, const ScheduleOrder& order) {
  const size_t size = graph.nodes.size();
  const std::vector<bool> whole = WholeGathers(graph, order);
  ReplayResult result;
  result.in_flight.resize(size);
  result.stall.resize(size);
  std::vector<double> began(size, -1);
  Machine machine;
  const auto ended = [&](int n) {
    if (graph.nodes[n].role == Role::kStart) {
      result.in_flight[n] = Rounded(machine.now() - began[n]);
    }
  };
  const auto wait_for = [&](int n) {
    while (machine.IsUnderWay(n)) machine.Step(ended);
  };
  for (const int n : order) {
    const ScheduleNode& node = graph.nodes[n];
    if (node.work.alone() > Picoseconds(0)) {
      machine.Begin(n, node.work);
      wait_for(n);
    }
    // What is executed whole begins where it is waited for.
    const auto begin = [&](int start) {
      began[start] = machine.now();
      if (graph.nodes[start].transfer.alone() > Picoseconds(0)) {
        machine.Begin(start, graph.nodes[start].transfer);
      }
    };
    if (node.role == Role::kStart && !whole[n]) begin(n);
    if (node.role != Role::kDone) continue;
    if (whole[node.start]) begin(node.start);
    const double before = machine.now();
    wait_for(node.start);
    result.stall[node.start] = Rounded(machine.now() - before);
  }
  const double length = machine.now();
  result.work.time = Rounded(length);
  for (size_t r = 0; r < kResources; ++r) {
    result.work.share[r] = length > 0 ? std::min(1.0, machine.used()[r] / length) : 0;
  }
  if (length > 0) result.work.rate = BytesPerSecond(machine.moved() / length);
  return result;
}

}  // namespace tpusim::cost
