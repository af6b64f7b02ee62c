#include "workloads/hlo/analysis/call_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/branches.h"

namespace tpusim::hlo {

CallGraph::CallGraph(const Module& module) {
  std::vector<Computation*> found = {module.entry()};
  std::unordered_map<const Computation*, std::vector<Computation*>> callees;
  callers_[module.entry()];
  for (size_t n = 0; n < found.size(); ++n) {
    for (Instruction* i : found[n]->PostOrder()) {
      if (!IsControlFlow(i->opcode())) continue;
      for (Computation* called : i->called()) {
        const auto [callers, is_new] = callers_.try_emplace(called);
        callers->second.push_back(i);
        callees[found[n]].push_back(called);
        if (is_new) found.push_back(called);
      }
    }
  }
  // One that is called from several places comes behind the last of them.
  std::unordered_map<const Computation*, size_t> callers_to_come;
  for (const auto& [called, callers] : callers_) callers_to_come[called] = callers.size();
  control_ = {module.entry()};
  for (size_t n = 0; n < control_.size(); ++n) {
    for (Computation* called : callees[control_[n]]) {
      if (--callers_to_come.at(called) == 0) control_.push_back(called);
    }
  }
}

const std::vector<Instruction*>& CallGraph::CallersOf(const Computation& computation) const {
  return callers_.at(&computation);
}

const Instruction* CallGraph::OnlyCallerOf(const Computation& computation) const {
  const auto callers = callers_.find(&computation);
  return callers != callers_.end() && callers->second.size() == 1 ? callers->second[0] : nullptr;
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
  for (const Computation* c : calls.control()) {
    int64_t& times = executions[c];
    const std::vector<Instruction*>& callers = calls.CallersOf(*c);
    if (callers.empty()) times = 1;
    for (const Instruction* caller : callers) {
      const std::vector<Computation*> run = RunBy(*caller);
      if (std::ranges::find(run, c) == run.end()) continue;
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

absl::Status CheckExtent(const Module& module) {
  // Calls that share callees can multiply; no program is written so.
  constexpr int64_t kMaxInstructions = 4 << 20;
  // Loops in loops, branches in branches, fusions: later stages take stack for each.
  constexpr int64_t kMaxNesting = 256;
  struct Extent {
    int64_t size = 0, depth = 0;
  };
  std::unordered_map<const Computation*, Extent> extents;
  for (const Computation* computation : module.PostOrder()) {
    auto& [size, depth] = extents[computation];
    for (const Instruction* instruction : computation->instructions()) {
      ++size;
      const int64_t level = instruction->opcode() == Opcode::kCall ? 0 : 1;
      for (const Computation* called : instruction->called()) {
        depth = std::max(depth, extents.at(called).depth + level);
      }
      if (depth > kMaxNesting) {
        return UserError(fmt::format("computations nested more than {} deep at {}", kMaxNesting,
                                     instruction->Describe()));
      }
      if (!IsControlFlow(instruction->opcode())) continue;
      if (instruction->opcode() == Opcode::kCall && instruction->called().size() != 1) {
        return UserError("a call of no computation: " + instruction->Describe());
      }
      for (const Computation* called : instruction->called()) size += extents.at(called).size;
      if (size > kMaxInstructions) {
        return UserError(
            fmt::format("inlining the program's calls gives more than {} instructions; the last "
                        "one was {}",
                        kMaxInstructions, instruction->Describe()));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tpusim::hlo
