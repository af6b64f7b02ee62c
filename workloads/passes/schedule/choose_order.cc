#include "workloads/passes/schedule/choose_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workloads/passes/pipeline/limits.h"
#include "workloads/passes/schedule/list_order.h"

namespace tpusim::passes {
namespace {

using Role = cost::ScheduleNode::Role;

// Of the sum of all transfers to that of all compute.
constexpr double kRatios[] = {0.0625, 0.125, 0.18, 0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 8, 16};

class Chooser {
 public:
  Chooser(const cost::ScheduleGraph& graph, const MemoryLimit& limit)
      : graph_(graph), limit_(limit) {}

  ChosenOrder Run() {
    std::vector<Picoseconds> alone(graph_.nodes.size());
    double transfers = 0, compute = 0;
    for (size_t n = 0; n < alone.size(); ++n) {
      const cost::ScheduleNode& node = graph_.nodes[n];
      compute += static_cast<double>(node.work.alone().value());
      if (node.role != Role::kStart) continue;
      alone[n] = node.transfer.alone();
      transfers += static_cast<double>(alone[n].value());
    }
    Try(alone);
    if (limit_.memory != nullptr) {
      cost::ScheduleOrder as_written(graph_.nodes.size());
      std::iota(as_written.begin(), as_written.end(), 0);
      Consider(std::move(as_written));
    }
    if (transfers > 0 && compute > 0) {
      for (const double ratio : kRatios) Try(Scaled(alone, ratio * compute / transfers));
      for (int round = 0;; ++round) {
        if (round == limits::kScheduleRounds.most()) {
          limits::kScheduleRounds.Reached();
          break;
        }
        const Picoseconds before = best_.work.time;
        Try(std::vector<Picoseconds>(in_flight_));
        if (best_.work.time == before) break;
      }
    }
    return std::move(best_);
  }

 private:
  static std::vector<Picoseconds> Scaled(std::vector<Picoseconds> times, double by) {
    for (Picoseconds& time : times) {
      time = Picoseconds(std::llround(static_cast<double>(time.value()) * by));
    }
    return times;
  }

  void Try(const std::vector<Picoseconds>& in_flight) {
    cost::ScheduleOrder order = FreeEarly(graph_, ListOrder(graph_, in_flight));
    Consider(EarlyStarts(graph_, order));
    Consider(std::move(order));
  }

  // The first of those that take equally long wins.
  void Consider(cost::ScheduleOrder order) {
    cost::ReplayResult replayed = cost::Replay(graph_, order);
    // By how much it does not fit.
    const Bytes over = limit_.memory == nullptr
                           ? Bytes(0)
                           : std::max(Bytes(0), limit_.memory->PeakOf(order) - limit_.most);
    if (!best_.order.empty() &&
        std::pair(over, replayed.work.time) >= std::pair(over_, best_.work.time)) {
      return;
    }
    over_ = over;
    best_ = {std::move(order), replayed.work};
    in_flight_ = std::move(replayed.in_flight);
  }

  const cost::ScheduleGraph& graph_;
  const MemoryLimit limit_;
  ChosenOrder best_;
  Bytes over_{0};                       // of the best order
  std::vector<Picoseconds> in_flight_;  // in the best order
};

}  // namespace

ChosenOrder ChooseOrder(const cost::ScheduleGraph& graph, const MemoryLimit& limit) {
  return Chooser(graph, limit).Run();
}

}  // namespace tpusim::passes
