#include "workloads/passes/schedule.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/opcode.h"
#include "workloads/passes/control.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Transfers of one kind in flight at once: the TPU compiler's limit for
// asynchronous collective-permutes (documented default of its scheduler).
constexpr int kMaxInFlight = 5;

struct Node {
  Instruction* instruction = nullptr;
  int position = 0;     // in the original order
  int waiting_for = 0;  // operands and control predecessors not yet placed
  Picoseconds busy{0};
  Picoseconds in_flight{0};  // starts only
  Picoseconds height{0};     // longest way from the start of this to the end
  std::vector<int> successors;
};

// The start behind a done, past updates.
const Instruction& StartOf(const Instruction& done) {
  const Instruction* i = done.operand(0);
  while (i->opcode() == Opcode::kAsyncUpdate) i = i->operand(0);
  return *i;
}

class ListScheduler {
 public:
  ListScheduler(const LatencyEstimator& estimator,
                const std::unordered_map<const Computation*, Picoseconds>& lengths)
      : estimator_(estimator), lengths_(lengths) {}

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
    computation.set_schedule(std::move(order));
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
      const auto depends_on = [&](const Instruction* before) {
        nodes_[index.at(before)].successors.push_back(node.position);
        ++node.waiting_for;
      };
      for (const Instruction* operand : i->operands()) depends_on(operand);
      for (const Instruction* before : i->control_predecessors()) depends_on(before);
      index[i] = node.position;
      nodes_.push_back(std::move(node));
    }
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      Picoseconds after(0);
      for (int s : node->successors) after = std::max(after, nodes_[s].height);
      node->height = node->busy + node->in_flight + after;
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

  void MakeReady(const Node& node) {
    const Instruction& i = *node.instruction;
    if (hlo::IsAsyncDone(i.opcode())) {
      dones_.insert({arrival_.at(&StartOf(i)), node.position});
    } else if (hlo::IsAsyncStart(i.opcode())) {
      starts_.insert(node.position);
    } else if (node.busy == Picoseconds(0)) {
      free_.insert(node.position);
    } else {
      compute_.insert({-node.height.value(), node.position});
    }
  }

  int Pick() {
    if (!free_.empty()) return *free_.begin();
    if (!starts_.empty() && in_flight_count_ < kMaxInFlight) return *starts_.begin();
    if (!dones_.empty() && dones_.begin()->first <= now_) return dones_.begin()->second;
    if (!compute_.empty()) return compute_.begin()->second;
    if (!dones_.empty()) return dones_.begin()->second;
    TPUSIM_CHECK(!starts_.empty(), "nothing is ready in an acyclic computation");
    return *starts_.begin();
  }

  void Place(int position) {
    const Node& node = nodes_[position];
    const Instruction& i = *node.instruction;
    if (hlo::IsAsyncDone(i.opcode())) {
      const Picoseconds arrival = arrival_.at(&StartOf(i));
      dones_.erase({arrival, position});
      now_ = std::max(now_, arrival);
      --in_flight_count_;
    } else if (hlo::IsAsyncStart(i.opcode())) {
      starts_.erase(position);
      arrival_[&i] = now_ + node.in_flight;
      ++in_flight_count_;
    } else if (node.busy == Picoseconds(0)) {
      free_.erase(position);
    } else {
      compute_.erase({-node.height.value(), position});
    }
    now_ += node.busy;
    for (int s : node.successors) {
      if (--nodes_[s].waiting_for == 0) MakeReady(nodes_[s]);
    }
  }

  const LatencyEstimator& estimator_;
  const std::unordered_map<const Computation*, Picoseconds>& lengths_;
  std::vector<Node> nodes_;
  Picoseconds now_{0};
  int in_flight_count_ = 0;
  std::set<int> free_, starts_;
  std::set<std::pair<int64_t, int>> compute_;    // (-height, position)
  std::set<std::pair<Picoseconds, int>> dones_;  // (arrival, position)
  std::unordered_map<const Instruction*, Picoseconds> arrival_;
};

}  // namespace

absl::Status Schedule(hlo::Module& module, const Target&, const LatencyEstimator& estimator) {
  std::unordered_map<const Computation*, Picoseconds> lengths;
  std::vector<Computation*> computations = ControlComputations(module);
  // Callers come first in the list; a body must be scheduled before its loop.
  for (auto it = computations.rbegin(); it != computations.rend(); ++it) {
    ASSIGN_OR_RETURN(lengths[*it], ListScheduler(estimator, lengths).Run(**it));
  }
  return absl::OkStatus();
}

}  // namespace tpusim::passes
