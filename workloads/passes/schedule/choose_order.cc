#include "workloads/passes/schedule/choose_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workloads/buffers/live_bytes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/schedule/limits.h"
#include "workloads/passes/schedule/list_order.h"

namespace tpusim::passes {
namespace {

using Role = cost::ScheduleNode::Role;

// Ratios of the sum of all transfers to that of all compute.
// number: effort: what is tried in turn
constexpr double kRatios[] = {0.0625, 0.125, 0.18, 0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 8, 16};

// A replay is not more exact than that: what is longer by less is not longer.
constexpr double kLonger = 1e-3;  // number: rounding

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
    TakeLateConstants();
    return std::move(best_);
  }

 private:
  // Takes the best order with constants made late, unless that makes it noticeably longer.
  void TakeLateConstants() {
    cost::ScheduleOrder late = LateConstants(graph_, best_.order);
    if (late == best_.order) return;
    const cost::ReplayResult replayed = cost::Replay(graph_, late);
    const double longer = Ratio(replayed.work.alone(), best_.work.alone()) - 1;
    if (longer > kLonger || OverLimit(late) > over_) return;
    best_ = {std::move(late), replayed.work};
  }

  // Returns by how much it does not fit.
  Bytes OverLimit(const cost::ScheduleOrder& order) const {
    if (limit_.memory == nullptr) return Bytes(0);
    return std::max(Bytes(0), limit_.memory->PeakOf(order) - limit_.most);
  }

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
    const Bytes over = OverLimit(order);
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

using hlo::Computation;
using hlo::Instruction;

OrderMemory::OrderMemory(const cost::ScheduleGraph& graph, const target::Target& target,
                         const hlo::AliasAnalysis& aliases, const PeakOfComputations& callees)
    : inside_(graph.nodes.size()) {
  std::unordered_map<const Instruction*, int> node;  // looked up, never iterated
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Instruction& i = *graph.nodes[n].instruction;
    node[&i] = static_cast<int>(n);
    for (const Computation* called : i.called()) {
      const auto peak = callees.find(called);
      if (peak != callees.end()) inside_[n] = std::max(inside_[n], peak->second);
    }
  }
  std::vector<int> number(aliases.arrays().size(), -1);  // of buffers, by the array that owns them
  for (size_t a = 0; a < number.size(); ++a) {
    const int32_t owner = aliases.OwnerOf(static_cast<int32_t>(a));
    const hlo::ArrayValue& made = aliases.arrays()[owner];
    if (made.made_by->opcode() == hlo::Opcode::kParameter || !made.shape->IsArray() ||
        made.shape->layout.memory_space != hlo::kHbmSpace) {
      continue;
    }
    if (number[owner] < 0) {
      number[owner] = static_cast<int>(buffers_.size());
      buffers_.push_back({target.PaddedSize(*made.shape), node.at(made.made_by), {}, false});
    }
    Buffer& buffer = buffers_[number[owner]];
    const hlo::ArrayValue& array = aliases.arrays()[a];
    buffer.stays = buffer.stays || array.lives_out;
    for (const Instruction* reader : array.readers) buffer.readers.push_back(node.at(reader));
  }
}

Bytes OrderMemory::PeakOf(const cost::ScheduleOrder& order) const {
  std::vector<int64_t> position(order.size());
  for (size_t p = 0; p < order.size(); ++p) position[order[p]] = static_cast<int64_t>(p);
  std::vector<buffers::HeapBuffer> lives;
  lives.reserve(buffers_.size());
  for (const Buffer& b : buffers_) {
    const int64_t begin = position[b.made_by];
    int64_t last = b.stays ? std::ssize(order) - 1 : begin;
    for (const int reader : b.readers) last = std::max(last, position[reader]);
    lives.push_back({begin, last + 1, b.bytes});
  }
  const std::vector<Bytes> live = buffers::LiveAt(lives, std::ssize(order));
  Bytes peak(0);
  for (size_t p = 0; p < order.size(); ++p) peak = std::max(peak, live[p] + inside_[order[p]]);
  return peak;
}

}  // namespace tpusim::passes
