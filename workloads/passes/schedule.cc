#include "workloads/passes/schedule.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/opcode.h"
#include "workloads/passes/async_collectives.h"
#include "workloads/passes/control.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Kinds of transfers that have a limit in flight each.
enum Kind { kPermute, kGather, kOffLoaded, kCopy, kKinds };
using Limits = std::array<int, kKinds>;

Limits LimitsOf(const Target& target) {
  const configs::ChipParams& chip = target.chip();
  Limits limits;
  limits[kPermute] = 5;
  limits[kGather] = 1;
  limits[kOffLoaded] = std::max(1, static_cast<int>(chip.sparse_core.count / chip.devices));
  limits[kCopy] = 5;
  return limits;
}

Kind KindOf(const Instruction& start) {
  if (IsOffLoaded(start)) return kOffLoaded;
  if (start.opcode() == Opcode::kCollectivePermuteStart) return kPermute;
  return hlo::IsCollective(start.opcode()) ? kGather : kCopy;
}

// The start behind a done, past updates.
Instruction& StartOf(const Instruction& done) {
  Instruction* i = done.operand(0);
  while (i->opcode() == Opcode::kAsyncUpdate) i = i->operand(0);
  return *i;
}

struct Node {
  Instruction* instruction = nullptr;
  int position = 0;     // in the original order
  int waiting_for = 0;  // users and control successors not yet placed
  Picoseconds busy{0};
  Picoseconds in_flight{0};  // starts only
  Picoseconds depth{0};      // longest way from the beginning to the end of this
  std::vector<int> predecessors;
};

class ListScheduler {
 public:
  ListScheduler(const LatencyEstimator& estimator, const Limits& limits,
                const std::unordered_map<const Computation*, Picoseconds>& lengths)
      : estimator_(estimator), limits_(limits), lengths_(lengths) {}

  // Sets the computation's schedule; returns its length.
  absl::StatusOr<Picoseconds> Run(Computation& computation) {
    RETURN_IF_ERROR(BuildGraph(computation));
    for (Node& node : nodes_) {
      if (node.waiting_for == 0) MakeReady(node);
    }
    std::vector<Instruction*> order;
    order.reserve(nodes_.size());
    while (order.size() < nodes_.size()) {
      const int next = Pick();
      order.push_back(nodes_[next].instruction);
      Place(next);
    }
    std::reverse(order.begin(), order.end());
    computation.set_schedule(KeepSynchronous(order));
    return now_;
  }

 private:
  absl::Status BuildGraph(Computation& computation) {
    std::unordered_map<const Instruction*, int> index;
    for (Instruction* i : computation.PostOrder()) {
      Node node;
      node.instruction = i;
      node.position = static_cast<int>(nodes_.size());
      ASSIGN_OR_RETURN(node.busy, BusyTime(*i));
      if (hlo::IsAsyncStart(i->opcode())) {
        ASSIGN_OR_RETURN(node.in_flight, estimator_.in_flight(*i));
      }
      Picoseconds before(0);
      const auto depends_on = [&](const Instruction* on) {
        Node& other = nodes_[index.at(on)];
        node.predecessors.push_back(other.position);
        ++other.waiting_for;
        before = std::max(before, other.depth);
      };
      for (const Instruction* operand : i->operands()) depends_on(operand);
      for (const Instruction* on : i->control_predecessors()) depends_on(on);
      node.depth = before + node.busy + node.in_flight;
      index[i] = node.position;
      nodes_.push_back(std::move(node));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Picoseconds> BusyTime(const Instruction& i) const {
    if (i.opcode() == Opcode::kCall) return lengths_.at(i.called()[0]);
    if (i.opcode() == Opcode::kConditional) {
      Picoseconds longest(0);
      for (const Computation* c : i.called()) longest = std::max(longest, lengths_.at(c));
      return longest;
    }
    if (i.opcode() != Opcode::kWhile) return estimator_.busy(i);
    ASSIGN_OR_RETURN(const int64_t trips, estimator_.trips(i));
    Picoseconds once(0);  // body and condition
    for (const Computation* c : i.called()) once += lengths_.at(c);
    return once * trips;
  }

  // Time runs backwards: a transfer begins with its done and may end with its start
  // `in_flight` later.
  void MakeReady(const Node& node) {
    const Instruction& i = *node.instruction;
    if (hlo::IsAsyncDone(i.opcode())) {
      dones_[KindOf(StartOf(i))].insert(-node.position);
    } else if (hlo::IsAsyncStart(i.opcode())) {
      starts_.insert({due_.at(&i), -node.position});
    } else if (node.busy == Picoseconds(0)) {
      free_.insert(-node.position);
    } else {
      compute_.insert({-node.depth.value(), -node.position});
    }
  }

  int Pick() {
    if (!free_.empty()) return -*free_.begin();
    for (int kind = 0; kind < kKinds; ++kind) {
      if (!dones_[kind].empty() && in_flight_[kind] < limits_[kind]) {
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
    const Node& start = nodes_[-starts_.begin()->second];
    const Picoseconds gap = starts_.begin()->first - now_;
    constexpr int kLookedAt = 8;
    int looked_at = 0;
    for (const auto& [depth, position] : compute_) {
      const Node& node = nodes_[-position];
      if (node.busy <= gap || node.depth >= start.depth) return node.position;
      if (++looked_at == kLookedAt) break;
    }
    return -1;
  }

  void Place(int position) {
    const Node& node = nodes_[position];
    const Instruction& i = *node.instruction;
    if (hlo::IsAsyncDone(i.opcode())) {
      const Instruction& start = StartOf(i);
      const Kind kind = KindOf(start);
      dones_[kind].erase(-position);
      ++in_flight_[kind];
      due_[&start] = now_;  // and its duration, once the start is known to be next
    } else if (hlo::IsAsyncStart(i.opcode())) {
      starts_.erase({due_.at(&i), -position});
      now_ = std::max(now_, due_.at(&i));
      --in_flight_[KindOf(i)];
    } else if (node.busy == Picoseconds(0)) {
      free_.erase(-position);
    } else {
      compute_.erase({-node.depth.value(), -position});
    }
    now_ += node.busy;
    for (const int p : node.predecessors) {
      Node& before = nodes_[p];
      if (--before.waiting_for > 0) continue;
      if (hlo::IsAsyncStart(before.instruction->opcode())) {
        due_.at(before.instruction) += before.in_flight;
      }
      MakeReady(before);
    }
  }

  // An all-gather moves on in the loops of matrix products only: where none runs
  // between start and done, there is nothing to gain from two halves.
  static std::vector<Instruction*> KeepSynchronous(const std::vector<Instruction*>& order) {
    std::unordered_map<const Instruction*, int> products_before;  // of gathers' starts
    std::unordered_set<const Instruction*> whole;
    int products = 0;
    for (const Instruction* i : order) {
      if (CarriesGathers(*i)) ++products;
      if (hlo::IsAsyncStart(i->opcode()) && KindOf(*i) == kGather) products_before[i] = products;
      if (!hlo::IsAsyncDone(i->opcode())) continue;
      const auto start = products_before.find(&StartOf(*i));
      if (start != products_before.end() && start->second == products) whole.insert(start->first);
    }
    std::vector<Instruction*> result;
    std::vector<Instruction*> halves;
    for (Instruction* i : order) {
      if (whole.contains(i)) continue;
      if (!hlo::IsAsyncDone(i->opcode()) || !whole.contains(&StartOf(*i))) {
        result.push_back(i);
        continue;
      }
      halves.push_back(i);
      result.push_back(MakeSynchronous(*i));
    }
    for (Instruction* done : halves) {
      Instruction* start = &StartOf(*done);
      done->parent()->Remove(done);
      start->parent()->Remove(start);
    }
    return result;
  }

  const LatencyEstimator& estimator_;
  const Limits& limits_;
  const std::unordered_map<const Computation*, Picoseconds>& lengths_;
  std::vector<Node> nodes_;
  Picoseconds now_{0};  // before the end of the computation
  std::array<int, kKinds> in_flight_{};
  // By position, the last first.
  std::set<int> free_;
  std::array<std::set<int>, kKinds> dones_;
  std::set<std::pair<int64_t, int>> compute_;     // (-depth, -position)
  std::set<std::pair<Picoseconds, int>> starts_;  // (due, -position)
  std::unordered_map<const Instruction*, Picoseconds> due_;
};

}  // namespace

absl::Status Schedule(hlo::Module& module, const Target& target,
                      const LatencyEstimator& estimator) {
  const Limits limits = LimitsOf(target);
  std::unordered_map<const Computation*, Picoseconds> lengths;
  std::vector<Computation*> computations = ControlComputations(module);
  // Callers come first in the list; a body must be scheduled before its loop.
  for (auto it = computations.rbegin(); it != computations.rend(); ++it) {
    ASSIGN_OR_RETURN(lengths[*it], ListScheduler(estimator, limits, lengths).Run(**it));
  }
  return absl::OkStatus();
}

}  // namespace tpusim::passes
