#include "workloads/passes/schedule/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "configs/status_macros.h"

namespace tpusim::passes {
namespace {

using Role = ScheduleNode::Role;

// What is left of less than this is rounding. In ps.
constexpr double kNothing = 1e-6;

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
  const Shares& used() const { return used_; }

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
  // Max-min fair: a level rises, and everybody's largest share with it, up to what it
  // is alone.
  void SetSpeeds() {
    settled_ = true;
    rising_.clear();
    Shares wanted = {};
    for (Activity& a : activities_) {
      a.speed = 1;
      if (a.latency > kNothing) continue;
      for (size_t r = 0; r < kResources; ++r) wanted[r] += a.work->share[r];
      rising_.push_back(&a);
    }
    const auto full = [](double share) { return share > 1 + 1e-9; };
    if (std::none_of(wanted.begin(), wanted.end(), full)) return;

    Shares free;
    free.fill(1);
    while (!rising_.empty()) {
      // The level at which the next one stops, or the next resource is full.
      Shares weights = {};
      double level = std::numeric_limits<double>::infinity();
      for (const Activity* a : rising_) {
        const double largest = LargestOf(*a);
        level = std::min(level, largest);
        if (largest <= 0) continue;
        for (size_t r = 0; r < kResources; ++r) weights[r] += a->work->share[r] / largest;
      }
      for (size_t r = 0; r < kResources; ++r) {
        if (weights[r] > 0) level = std::min(level, std::max(0.0, free[r]) / weights[r]);
      }
      const auto stops = [&](const Activity* a) {
        const double largest = LargestOf(*a);
        if (largest <= level * (1 + 1e-12)) return true;
        for (size_t r = 0; r < kResources; ++r) {
          if (a->work->share[r] > 0 && free[r] <= level * weights[r] * (1 + 1e-12)) return true;
        }
        return false;
      };
      const auto first = std::stable_partition(rising_.begin(), rising_.end(),
                                               [&](const Activity* a) { return !stops(a); });
      Shares taken = {};
      for (auto it = first; it != rising_.end(); ++it) {
        const double largest = LargestOf(**it);
        (*it)->speed = largest > 0 ? std::min(1.0, level / largest) : 1;
        for (size_t r = 0; r < kResources; ++r) {
          taken[r] += (*it)->work->share[r] * (*it)->speed;
        }
      }
      for (size_t r = 0; r < kResources; ++r) free[r] -= taken[r];
      rising_.erase(first, rising_.end());
    }
    // Nobody stands still for rounding.
    for (Activity& a : activities_) a.speed = std::max(a.speed, 1e-9);
  }

  static double LargestOf(const Activity& a) {
    return *std::max_element(a.work->share.begin(), a.work->share.end());
  }

  double now_ = 0;  // ps
  Shares used_ = {};
  std::vector<Activity> activities_;
  std::vector<Activity*> rising_;
  bool settled_ = true;
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
  return result;
}

}  // namespace tpusim::passes
