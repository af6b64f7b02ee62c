#include "workloads/passes/schedule/schedule.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/collectives/async_collectives.h"
#include "workloads/passes/schedule/choose_order.h"
#include "workloads/passes/schedule/graph.h"

namespace tpusim::passes {
namespace {

using cost::Work;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Role = ScheduleNode::Role;
using WorkOfComputations = std::unordered_map<const Computation*, Work>;

// One after the other, so often.
Work InTurns(const std::vector<const Work*>& parts, int64_t times) {
  Work all;
  for (const Work* part : parts) all.time += part->alone();
  if (all.time == Picoseconds(0)) return all;
  for (const Work* part : parts) {
    const double share = Ratio(part->time, all.time);
    all.rate += part->rate * share;
    for (size_t r = 0; r < cost::kResources; ++r) all.share[r] += part->share[r] * share;
  }
  all.time = all.time * times;
  return all;
}

absl::StatusOr<Work> WorkOf(const Instruction& i, cost::CostModel& cost,
                            const WorkOfComputations& known) {
  if (i.opcode() == Opcode::kCall) return known.at(i.called()[0]);
  if (i.opcode() == Opcode::kConditional) {
    const Computation* longest = i.called()[0];
    for (const Computation* c : i.called()) {
      if (known.at(c).alone() > known.at(longest).alone()) longest = c;
    }
    return known.at(longest);
  }
  if (i.opcode() != Opcode::kWhile) return cost.WorkOf(i);
  ASSIGN_OR_RETURN(const int64_t trips, cost.TripsOf(i));
  std::vector<const Work*> once;  // body and condition
  for (const Computation* c : i.called()) once.push_back(&known.at(c));
  return InTurns(once, trips);
}

absl::StatusOr<ScheduleGraph> GraphOf(Computation& computation, const TransferLimits& limits,
                                      cost::CostModel& cost, const WorkOfComputations& known) {
  ScheduleGraph graph;
  graph.limits = limits;
  std::unordered_map<const Instruction*, int> number;
  for (Instruction* i : computation.PostOrder()) {
    ScheduleNode node;
    node.instruction = i;
    node.carries_gathers = CarriesGathers(*i);
    ASSIGN_OR_RETURN(node.work, WorkOf(*i, cost, known));
    if (hlo::IsAsyncStart(i->opcode())) {
      node.role = Role::kStart;
      node.kind = KindOf(*i);
      ASSIGN_OR_RETURN(node.transfer, cost.TransferOf(*i));
    } else if (hlo::IsAsyncDone(i->opcode())) {
      const Instruction& start = StartOf(*i);
      node.role = Role::kDone;
      node.kind = KindOf(start);
      node.start = number.at(&start);
    }
    for (const Instruction* operand : i->operands()) {
      node.predecessors.push_back(number.at(operand));
    }
    for (const Instruction* on : i->control_predecessors()) {
      node.predecessors.push_back(number.at(on));
    }
    number[i] = static_cast<int>(graph.nodes.size());
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

void SetSchedule(Computation& computation, const ScheduleGraph& graph, const ScheduleOrder& order) {
  std::vector<Instruction*> schedule;
  schedule.reserve(order.size());
  for (const int n : order) schedule.push_back(graph.nodes[n].instruction);
  computation.set_schedule(std::move(schedule));
}

}  // namespace

absl::StatusOr<bool> Schedule(hlo::Module& module, const PassContext& context) {
  TPUSIM_CHECK(context.cost != nullptr, "a schedule without costs");
  const TransferLimits limits = LimitsOf(context.target);
  bool changed = false;
  WorkOfComputations known;
  std::vector<Computation*> computations = ControlComputations(module);
  // Callers come first in the list; a body must be scheduled before its loop.
  for (auto it = computations.rbegin(); it != computations.rend(); ++it) {
    ASSIGN_OR_RETURN(const ScheduleGraph graph, GraphOf(**it, limits, *context.cost, known));
    ChosenOrder chosen = ChooseOrder(graph);
    const std::vector<Instruction*> before = (*it)->schedule();
    SetSchedule(**it, graph, chosen.order);
    changed = changed || (*it)->schedule() != before;
    known[*it] = chosen.work;
  }
  return changed;
}

}  // namespace tpusim::passes
