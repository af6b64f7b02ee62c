#include "workloads/passes/schedule/schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/buffers/live_bytes.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/branches.h"
#include "workloads/passes/schedule/choose_order.h"
#include "workloads/passes/schedule/reasons.h"

namespace tpusim::passes {
namespace {

using cost::Work;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Role = cost::ScheduleNode::Role;
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
    const std::vector<Computation*> branches = hlo::RunBy(i);
    return known.at(*std::ranges::max_element(
        branches, {}, [&](const Computation* c) { return known.at(c).alone(); }));
  }
  if (i.opcode() != Opcode::kWhile) return cost.WorkOf(i);
  ASSIGN_OR_RETURN(const int64_t trips, cost.TripsOf(i));
  std::vector<const Work*> once;  // body and condition
  for (const Computation* c : i.called()) once.push_back(&known.at(c));
  return InTurns(once, trips);
}

absl::StatusOr<cost::ScheduleGraph> GraphOf(Computation& computation,
                                            const cost::TransferLimits& limits,
                                            cost::CostModel& cost,
                                            const WorkOfComputations& known) {
  cost::ScheduleGraph graph;
  graph.limits = limits;
  std::unordered_map<const Instruction*, int> number;
  for (Instruction* i : computation.PostOrder()) {
    cost::ScheduleNode node;
    ASSIGN_OR_RETURN(node.work, WorkOf(*i, cost, known));
    RETURN_IF_ERROR(cost::SetRole(*i, cost, node));
    if (node.role == Role::kDone) node.start = number.at(&hlo::StartOf(*i));
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

void SetSchedule(Computation& computation, const cost::ScheduleGraph& graph,
                 const cost::ScheduleOrder& order) {
  std::vector<Instruction*> schedule;
  schedule.reserve(order.size());
  for (const int n : order) schedule.push_back(graph.nodes[n].instruction);
  computation.set_schedule(std::move(schedule));
}

using Schedules = std::unordered_map<const Computation*, std::vector<Instruction*>>;
// Bytes that a computation may take beyond (below 0: short of) those of its present order.
using Slack = std::unordered_map<const Computation*, Bytes>;

// Numbers of the nodes in the order that the computation has.
cost::ScheduleOrder OrderOf(const Computation& computation, const cost::ScheduleGraph& graph) {
  std::unordered_map<const Instruction*, int> number;  // looked up, never iterated
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    number[graph.nodes[n].instruction] = static_cast<int>(n);
  }
  cost::ScheduleOrder order;
  for (const Instruction* i : computation.schedule()) order.push_back(number.at(i));
  return order;
}

// Orders all computations, callees first: a body must be ordered before its loop. With
// slack they are ordered already, and stay within it if they can.
absl::Status OrderAll(const std::vector<Computation*>& callers_first, const PassContext& context,
                      const Slack* slack) {
  const cost::TransferLimits limits = cost::LimitsOf(context.target);
  WorkOfComputations known;
  PeakOfComputations peaks_before, peaks;
  for (auto it = callers_first.rbegin(); it != callers_first.rend(); ++it) {
    Computation& computation = **it;
    ASSIGN_OR_RETURN(const cost::ScheduleGraph graph,
                     GraphOf(computation, limits, context.cost, known));
    if (slack == nullptr) {
      ChosenOrder chosen = ChooseOrder(graph);
      SetSchedule(computation, graph, chosen.order);
      known[&computation] = chosen.work;
      continue;
    }
    const hlo::AliasAnalysis& aliases = context.facts->Aliases().Of(computation);
    const OrderMemory before(graph, context.target, aliases, peaks_before);
    const OrderMemory memory(graph, context.target, aliases, peaks);
    const cost::ScheduleOrder order = OrderOf(computation, graph);
    peaks_before[&computation] = before.PeakOf(order);
    const Bytes most = peaks_before.at(&computation) + slack->at(&computation);
    const ChosenOrder chosen = ChooseOrder(graph, {&memory, most});
    peaks[&computation] = memory.PeakOf(chosen.order);
    known[&computation] = chosen.work;
    if (chosen.order == order) continue;
    SetSchedule(computation, graph, chosen.order);
    for (const int n : chosen.order) {
      if (graph.nodes[n].role != Role::kStart) continue;
      hlo::annotations::kOrderedForMemory.Set(graph.nodes[n].instruction);
    }
  }
  return absl::OkStatus();
}

// Returns by computation how far what is live while it runs stays below the limit.
Slack SlackOf(const std::vector<Computation*>& computations, const buffers::MemoryPlan& plan,
              Bytes limit) {
  const std::vector<Bytes> live =
      buffers::LiveAt(plan.LivesIn(hlo::kHbmSpace), std::ssize(plan.moments));
  Slack slack;
  for (const Computation* computation : computations) {
    const std::vector<int64_t>& moments = plan.computations.at(computation).moments;
    slack[computation] = limit - *std::max_element(live.begin() + moments.front(),
                                                   live.begin() + moments.back() + 1);
  }
  return slack;
}

// Orders again what takes too much, and takes that back if it does not help.
absl::Status FitIntoMemory(hlo::Module& module, const std::vector<Computation*>& computations,
                           const PassContext& context) {
  const int64_t percent = context.target.policy().scheduled_percent;
  // number: percent
  const Bytes limit(context.target.Usable(hlo::kHbmSpace).value() * percent / 100);
  const buffers::MemoryPlan& plan = context.facts->PlanOf(module, context.target);
  if (plan.LivePeak() <= limit) return absl::OkStatus();
  const Bytes peak = plan.LivePeak();
  Schedules before;
  for (const Computation* c : computations) before[c] = c->schedule();
  const Slack slack = SlackOf(computations, plan, limit);
  RETURN_IF_ERROR(OrderAll(computations, context, &slack));
  context.facts->ForgetOrder();
  if (context.facts->PlanOf(module, context.target).LivePeak() < peak) return absl::OkStatus();
  for (Computation* c : computations) {
    for (Instruction* i : c->schedule()) hlo::annotations::kOrderedForMemory.Drop(i);
    c->set_schedule(before.at(c));
  }
  context.facts->ForgetOrder();
  return absl::OkStatus();
}

// Records by computation which transfers run beside which operations.
void Explain(const std::vector<Computation*>& computations, const Schedules& before,
             const Records& records) {
  for (const Computation* c : computations) {
    int64_t place = 0;
    std::unordered_map<const Instruction*, int64_t> started;  // looked up, never iterated
    for (const Instruction* i : c->schedule()) {
      if (hlo::IsAsyncStart(i->opcode())) started[i] = place;
      if (hlo::IsAsyncDone(i->opcode())) {
        const Instruction& start = hlo::StartOf(*i);
        const bool memory = hlo::annotations::kOrderedForMemory.On(start);
        records.Add(memory ? reasons::kBesideForMemory : reasons::kBeside, start.name(),
                    {{"count", place - started.at(&start) - 1}, {"done", i->name()}});
      }
      ++place;
    }
    const bool same = c->schedule() == before.at(c);
    records.Add(same ? reasons::kOrderKept : reasons::kOrdered, c->name(),
                {{"count", static_cast<int64_t>(c->schedule().size())}});
  }
}

}  // namespace

absl::StatusOr<bool> Schedule(hlo::Module& module, const PassContext& context) {
  const std::vector<Computation*>& computations = context.facts->CallsOf(module).control();
  Schedules before;
  for (const Computation* c : computations) before[c] = c->schedule();
  RETURN_IF_ERROR(OrderAll(computations, context, nullptr));
  context.facts->ForgetOrder();
  RETURN_IF_ERROR(FitIntoMemory(module, computations, context));
  if (context.records.wanted()) Explain(computations, before, context.records);
  return std::any_of(computations.begin(), computations.end(),
                     [&](const Computation* c) { return c->schedule() != before.at(c); });
}

}  // namespace tpusim::passes
