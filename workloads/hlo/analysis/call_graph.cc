#include "workloads/hlo/analysis/call_graph.h"

#include <algorithm>
#include <limits>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/branches.h"

namespace tpusim::hlo {

CallGraph::CallGraph(const Module& module) : control_{module.entry()} {
  callers_[module.entry()];
  for (size_t n = 0; n < control_.size(); ++n) {
    for (Instruction* i : control_[n]->PostOrder()) {
      if (!IsControlFlow(i->opcode())) continue;
      for (Computation* called : i->called()) {
        const auto [callers, is_new] = callers_.try_emplace(called);
        callers->second.push_back(i);
        if (is_new) control_.push_back(called);
      }
    }
  }
}

const std::vector<Instruction*>& CallGraph::CallersOf(const Computation& computation) const {
  return callers_.at(&computation);
}

const Instruction* CallGraph::LoopOf(const Computation& body) const {
  const Instruction* loop = nullptr;
  for (const Instruction* caller : CallersOf(body)) {
    if (caller->opcode() == Opcode::kWhile && caller->called()[0] == &body) loop = caller;
  }
  return loop;
}

std::vector<Computation*> ControlComputations(const Module& module) {
  return CallGraph(module).control();
}

absl::StatusOr<std::unordered_map<const Computation*, int64_t>> ExecutionsOf(
    const CallGraph& calls, const TripsOfLoop& trips) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::unordered_map<const Computation*, int64_t> executions;
  // A computation that is called from several depths comes behind the deepest of them here.
  std::vector<Computation*> callees_first;
  TPUSIM_CHECK(CalleesFirst({calls.control().front()}, &callees_first), "a circle of calls");
  for (auto c = callees_first.rbegin(); c != callees_first.rend(); ++c) {
    if (!calls.IsControl(**c)) continue;
    int64_t& times = executions[*c];
    const std::vector<Instruction*>& callers = calls.CallersOf(**c);
    if (callers.empty()) times = 1;
    for (const Instruction* caller : callers) {
      const std::vector<Computation*> run = RunBy(*caller);
      if (std::ranges::find(run, *c) == run.end()) continue;
      int64_t more = executions.at(caller->parent());
      if (caller->opcode() == Opcode::kWhile) {
        ASSIGN_OR_RETURN(const int64_t once, trips(*caller));
        more = SaturatedProduct(more, once);
      }
      times = more > kMost - times ? kMost : times + more;
    }
  }
  return executions;
}

}  // namespace tpusim::hlo
