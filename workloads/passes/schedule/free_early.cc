#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "workloads/passes/schedule/list_order.h"

namespace tpusim::passes {
namespace {

using Role = cost::ScheduleNode::Role;

class EarlyCopies {
 public:
  EarlyCopies(const cost::ScheduleGraph& graph, const cost::ScheduleOrder& order)
      : graph_(graph),
        order_(order),
        done_of_(graph.nodes.size(), -1),
        waits_for_(graph.nodes.size()),
        waiting_(graph.nodes.size()),
        place_(graph.nodes.size(), -1),
        placed_(graph.nodes.size()),
        over_(graph.nodes.size()) {
    for (const int n : order) {
      const cost::ScheduleNode& node = graph.nodes[n];
      if (!IsCopy(n)) continue;
      place_[n] = static_cast<int>(copies_.size());
      copies_.push_back(n);
      if (node.role == Role::kDone) {
        done_of_[node.start] = n;
        continue;
      }
      waits_for_[n] = static_cast<int>(node.predecessors.size());
      for (const int p : node.predecessors) waiting_[p].push_back(n);
    }
  }

  cost::ScheduleOrder Run() {
    if (copies_.empty()) return order_;
    result_.reserve(order_.size());
    for (const int n : order_) {
      if (IsCopy(n)) continue;
      for (const int p : graph_.nodes[n].predecessors) {
        if (place_[p] >= 0) PlaceUpTo(place_[p]);
      }
      Place(n);
      PlaceWhatCan();
    }
    if (!copies_.empty()) PlaceUpTo(static_cast<int>(copies_.size()) - 1);
    return std::move(result_);
  }

 private:
  bool IsCopy(int n) const {
    return graph_.nodes[n].kind == cost::kToHost && graph_.nodes[n].role != Role::kMain;
  }

  void Place(int n) {
    const cost::ScheduleNode& node = graph_.nodes[n];
    placed_[n] = true;
    result_.push_back(n);
    now_ += node.work.alone();
    if (IsCopy(n) && node.role == Role::kStart) {
      link_free_ = std::max(link_free_, now_) + node.transfer.alone() * 2;
      over_[n] = link_free_;
      in_flight_.push_back(n);
      ++under_way_;
    } else if (IsCopy(n)) {
      now_ = std::max(now_, over_[node.start]);
      --under_way_;
    }
    for (const int start : waiting_[n]) {
      if (--waits_for_[start] == 0) ready_.push_back(start);
    }
  }

  // Copies that are over, and starts of others.
  void PlaceWhatCan() {
    while (true) {
      while (!in_flight_.empty() && placed_[done_of_[in_flight_.front()]]) in_flight_.pop_front();
      while (!ready_.empty() && placed_[ready_.front()]) ready_.pop_front();
      if (!in_flight_.empty() && over_[in_flight_.front()] <= now_) {
        Place(done_of_[in_flight_.front()]);
      } else if (!ready_.empty() && under_way_ < graph_.limits[cost::kToHost]) {
        Place(ready_.front());
      } else {
        return;
      }
    }
  }

  // Places all copies up to this one in their former order, which respects their dependencies.
  void PlaceUpTo(int last) {
    for (; next_ <= last; ++next_) {
      const int n = copies_[next_];
      if (placed_[n]) continue;
      if (graph_.nodes[n].role == Role::kStart) {
        while (under_way_ >= graph_.limits[cost::kToHost] && !in_flight_.empty()) {
          const int oldest = done_of_[in_flight_.front()];
          in_flight_.pop_front();
          if (!placed_[oldest]) Place(oldest);
        }
      }
      Place(n);
    }
  }

  const cost::ScheduleGraph& graph_;
  const cost::ScheduleOrder& order_;
  cost::ScheduleOrder result_;
  cost::ScheduleOrder copies_;  // starts and dones, in the order that was
  std::vector<int> done_of_;    // by start
  std::vector<int> waits_for_;  // starts: for how much that is not placed
  std::vector<std::vector<int>> waiting_;
  std::vector<int> place_;  // in copies_; -1: another node
  std::vector<bool> placed_;
  std::vector<Picoseconds> over_;  // starts
  std::deque<int> ready_, in_flight_;
  int under_way_ = 0, next_ = 0;
  Picoseconds now_{0}, link_free_{0};
};

}  // namespace

cost::ScheduleOrder FreeEarly(const cost::ScheduleGraph& graph, const cost::ScheduleOrder& order) {
  return EarlyCopies(graph, order).Run();
}

}  // namespace tpusim::passes
