#include "workloads/passes/schedule/list_order.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/passes/schedule/limits.h"

namespace tpusim::passes {
namespace {

using Role = cost::ScheduleNode::Role;

class ListScheduler {
 public:
  ListScheduler(const cost::ScheduleGraph& graph, const std::vector<Picoseconds>& in_flight)
      : graph_(graph), in_flight_(in_flight), state_(graph.nodes.size()) {
    for (size_t n = 0; n < state_.size(); ++n) {
      const cost::ScheduleNode& node = graph.nodes[n];
      Picoseconds before(0);
      for (const int p : node.predecessors) {
        ++state_[p].waiting_for;
        before = std::max(before, state_[p].depth);
      }
      state_[n].depth = before + node.work.alone();
      if (node.role == Role::kStart) state_[n].depth += in_flight[n];
    }
  }

  cost::ScheduleOrder Run() {
    for (int n = 0; n < static_cast<int>(state_.size()); ++n) {
      if (state_[n].waiting_for == 0) MakeReady(n);
    }
    cost::ScheduleOrder order;
    order.reserve(state_.size());
    while (order.size() < state_.size()) {
      order.push_back(Pick());
      Place(order.back());
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  struct State {
    int waiting_for = 0;   // users and control successors not yet placed
    Picoseconds depth{0};  // longest way from the beginning to the end of this
    Picoseconds due{0};    // starts: when it is hidden
  };

  // Time runs backwards: a transfer begins with its done and may end with its start
  // `in_flight` later.
  void MakeReady(int n) {
    const cost::ScheduleNode& node = graph_.nodes[n];
    if (node.role == Role::kDone) {
      dones_[node.kind].insert(-n);
    } else if (node.role == Role::kStart) {
      starts_.insert({state_[n].due, -n});
    } else if (node.work.alone() == Picoseconds(0)) {
      free_.insert(-n);
    } else {
      compute_.insert({-state_[n].depth.value(), -n});
    }
  }

  int Pick() const {
    if (!free_.empty()) return -*free_.begin();
    for (int kind = 0; kind < cost::kTransferKinds; ++kind) {
      if (!dones_[kind].empty() && under_way_[kind] < graph_.limits[kind]) {
        return -*dones_[kind].begin();
      }
    }
    if (!starts_.empty() && starts_.begin()->first <= now_) return -starts_.begin()->second;
    const int compute = PickCompute();
    if (compute >= 0) return compute;
    TPUSIM_CHECK(!starts_.empty(), "nothing is ready in an acyclic computation");
    return -starts_.begin()->second;
  }

  // -1: none, or none that fits before a start on a longer way to the beginning.
  int PickCompute() const {
    if (compute_.empty()) return -1;
    const int first = -compute_.begin()->second;
    if (starts_.empty()) return first;
    const State& start = state_[-starts_.begin()->second];
    const Picoseconds gap = start.due - now_;
    int64_t looked_at = 0;
    for (const auto& [depth, negative] : compute_) {
      const int n = -negative;
      if (graph_.nodes[n].work.alone() <= gap || state_[n].depth >= start.depth) return n;
      if (++looked_at < limits::kListLookAhead.most()) continue;
      if (std::ssize(compute_) > looked_at) {
        limits::kListLookAhead.Reached(std::ssize(compute_) - looked_at);
      }
      break;
    }
    return -1;
  }

  void Place(int n) {
    const cost::ScheduleNode& node = graph_.nodes[n];
    if (node.role == Role::kDone) {
      dones_[node.kind].erase(-n);
      ++under_way_[node.kind];
      state_[node.start].due = now_ + in_flight_[node.start];
    } else if (node.role == Role::kStart) {
      starts_.erase({state_[n].due, -n});
      now_ = std::max(now_, state_[n].due);
      --under_way_[node.kind];
    } else if (node.work.alone() == Picoseconds(0)) {
      free_.erase(-n);
    } else {
      compute_.erase({-state_[n].depth.value(), -n});
    }
    now_ += node.work.alone();
    for (const int p : node.predecessors) {
      if (--state_[p].waiting_for == 0) MakeReady(p);
    }
  }

  const cost::ScheduleGraph& graph_;
  const std::vector<Picoseconds>& in_flight_;
  std::vector<State> state_;
  Picoseconds now_{0};  // before the end of the computation
  std::array<int, cost::kTransferKinds> under_way_{};
  // Numbers of free nodes, the last first.
  std::set<int> free_;
  std::array<std::set<int>, cost::kTransferKinds> dones_;
  std::set<std::pair<int64_t, int>> compute_;     // (-depth, -number)
  std::set<std::pair<Picoseconds, int>> starts_;  // (due, -number)
};

}  // namespace

cost::ScheduleOrder ListOrder(const cost::ScheduleGraph& graph,
                              const std::vector<Picoseconds>& in_flight) {
  return ListScheduler(graph, in_flight).Run();
}

cost::ScheduleOrder EarlyStarts(const cost::ScheduleGraph& graph,
                                const cost::ScheduleOrder& order) {
  std::vector<int> waits_for(graph.nodes.size());
  std::vector<std::vector<int>> waiting(graph.nodes.size());     // starts, by what they wait for
  std::array<cost::ScheduleOrder, cost::kTransferKinds> starts;  // as ordered
  for (const int n : order) {
    const cost::ScheduleNode& node = graph.nodes[n];
    if (node.role != Role::kStart || node.kind == cost::kFromHost) continue;
    starts[node.kind].push_back(n);
    waits_for[n] = static_cast<int>(node.predecessors.size());
    for (const int p : node.predecessors) waiting[p].push_back(n);
  }
  std::array<size_t, cost::kTransferKinds> next{};
  std::array<int, cost::kTransferKinds> under_way{};
  std::vector<bool> placed(graph.nodes.size());
  cost::ScheduleOrder result;
  result.reserve(order.size());
  const auto place = [&](int n) {
    placed[n] = true;
    result.push_back(n);
    for (const int start : waiting[n]) --waits_for[start];
  };
  for (const int n : order) {
    const cost::ScheduleNode& node = graph.nodes[n];
    // What is next comes here at the latest.
    if (!placed[n]) place(n);
    if (node.role == Role::kDone) --under_way[node.kind];
    for (int kind = 0; kind < cost::kTransferKinds; ++kind) {
      while (next[kind] < starts[kind].size()) {
        const int start = starts[kind][next[kind]];
        if (!placed[start]) {
          if (waits_for[start] > 0 || under_way[kind] >= graph.limits[kind]) break;
          place(start);
        }
        ++under_way[kind];
        ++next[kind];
      }
    }
  }
  return result;
}

cost::ScheduleOrder LateConstants(const cost::ScheduleGraph& graph,
                                  const cost::ScheduleOrder& order) {
  std::vector<bool> held(graph.nodes.size());
  cost::ScheduleOrder result;
  result.reserve(order.size());
  for (const int n : order) {
    for (const int p : graph.nodes[n].predecessors) {
      if (!held[p]) continue;
      held[p] = false;
      result.push_back(p);
    }
    held[n] = graph.nodes[n].of_constants;
    if (!held[n]) result.push_back(n);
  }
  for (const int n : order) {
    if (held[n]) result.push_back(n);
  }
  return result;
}

}  // namespace tpusim::passes
