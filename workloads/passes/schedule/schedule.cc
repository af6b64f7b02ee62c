#include "workloads/passes/schedule/schedule.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/schedule/choose_order.h"
#include "workloads/passes/schedule/order_memory.h"

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

absl::StatusOr<cost::ScheduleGraph> GraphOf(Computation& computation,
                                            const cost::TransferLimits& limits,
                                            cost::CostModel& cost,
                                            const WorkOfComputations& known) {
  cost::ScheduleGraph graph;
  graph.limits = limits;
  std::unordered_map<const Instruction*, int> number;
  for (Instruction* i : computation.PostOrder()) {
    cost::ScheduleNode node;
    node.instruction = i;
    node.carries_gathers = cost::CarriesGathers(*i);
    ASSIGN_OR_RETURN(node.work, WorkOf(*i, cost, known));
    if (hlo::IsAsyncStart(i->opcode())) {
      node.role = Role::kStart;
      node.kind = cost::KindOf(*i);
      ASSIGN_OR_RETURN(node.transfer, cost.TransferOf(*i));
    } else if (hlo::IsAsyncDone(i->opcode())) {
      const Instruction& start = hlo::StartOf(*i);
      node.role = Role::kDone;
      node.kind = cost::KindOf(start);
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

void SetSchedule(Computation& computation, const cost::ScheduleGraph& graph,
                 const cost::ScheduleOrder& order) {
  std::vector<Instruction*> schedule;
  schedule.reserve(order.size());
  for (const int n : order) schedule.push_back(graph.nodes[n].instruction);
  computation.set_schedule(std::move(schedule));
}

using Schedules = std::unordered_map<const Computation*, std::vector<Instruction*>>;
// How much more (or, below 0, less) than the order that it has a computation may take.
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
                     GraphOf(computation, limits, *context.cost, known));
    if (slack == nullptr) {
      ChosenOrder chosen = ChooseOrder(graph);
      SetSchedule(computation, graph, chosen.order);
      known[&computation] = chosen.work;
      continue;
    }
    const OrderMemory before(computation, graph, context.target, peaks_before);
    const OrderMemory memory(computation, graph, context.target, peaks);
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
      SetFrontendAttribute(graph.nodes[n].instruction, std::string(kOrderedFor), "memory");
    }
  }
  return absl::OkStatus();
}

Bytes PeakOf(const buffers::MemoryPlan& plan) {
  return plan.PeakOf(hlo::kHbmSpace) - plan.fragmentation;
}

// By computation, how far what is live while it runs stays below the limit.
Slack SlackOf(const std::vector<Computation*>& computations, const buffers::MemoryPlan& plan,
              Bytes limit) {
  int64_t last = 0;
  for (const buffers::Buffer& b : plan.buffers) last = std::max({last, b.begin + 1, b.end});
  std::vector<Bytes> live(static_cast<size_t>(last) + 2);
  for (const buffers::Buffer& b : plan.buffers) {
    if (b.space != hlo::kHbmSpace) continue;
    live[b.begin + 1] += b.bytes;
    if (!b.argument) live[b.end + 1] -= b.bytes;
  }
  for (size_t n = 1; n < live.size(); ++n) live[n] += live[n - 1];
  Slack slack;
  for (const Computation* computation : computations) {
    const auto memory = plan.computations.find(computation);
    if (memory == plan.computations.end() || memory->second.moments.empty()) {
      slack[computation] = Bytes(0);
      continue;
    }
    const std::vector<int64_t>& moments = memory->second.moments;
    slack[computation] = limit - *std::max_element(live.begin() + moments.front(),
                                                   live.begin() + moments.back() + 1);
  }
  return slack;
}

// Orders again what takes too much, and takes that back if it does not help.
absl::Status FitIntoMemory(hlo::Module& module, const std::vector<Computation*>& computations,
                           const PassContext& context) {
  const int64_t percent = context.target.policy().scheduled_percent;
  const Bytes limit(context.target.Usable(hlo::kHbmSpace).value() * percent / 100);
  const buffers::MemoryPlan plan = buffers::PlanBuffers(module, context.target);
  if (PeakOf(plan) <= limit) return absl::OkStatus();
  Schedules before;
  for (const Computation* c : computations) before[c] = c->schedule();
  const Slack slack = SlackOf(computations, plan, limit);
  RETURN_IF_ERROR(OrderAll(computations, context, &slack));
  if (PeakOf(buffers::PlanBuffers(module, context.target)) < PeakOf(plan)) {
    return absl::OkStatus();
  }
  for (Computation* c : computations) {
    for (Instruction* i : c->schedule()) RemoveFrontendAttribute(i, std::string(kOrderedFor));
    c->set_schedule(before.at(c));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> Schedule(hlo::Module& module, const PassContext& context) {
  TPUSIM_CHECK(context.cost != nullptr, "a schedule without costs");
  const std::vector<Computation*> computations = ControlComputations(module);
  Schedules before;
  for (const Computation* c : computations) before[c] = c->schedule();
  RETURN_IF_ERROR(OrderAll(computations, context, nullptr));
  RETURN_IF_ERROR(FitIntoMemory(module, computations, context));
  return std::any_of(computations.begin(), computations.end(),
                     [&](const Computation* c) { return c->schedule() != before.at(c); });
}

}  // namespace tpusim::passes
