// Finds the computations that a device runs, their callers, and how often they run.
//
// A device runs the entry computation and the bodies, conditions, branches and callees that it
// reaches: the control flow. Reducers, comparators and fused computations are applied inside one
// instruction and do not belong to it.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_CALL_GRAPH_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_CALL_GRAPH_H_

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

class CallGraph {
 public:
  explicit CallGraph(const Module& module);

  // The computations of the control flow, callers before callees.
  const std::vector<Computation*>& control() const { return control_; }
  bool IsControl(const Computation& computation) const { return callers_.contains(&computation); }
  // The instructions that call a computation, each as often as it does; empty for the entry.
  const std::vector<Instruction*>& CallersOf(const Computation& computation) const;
  // The only instruction that calls a computation; null: it is the entry, no control flow, or has
  // several callers.
  const Instruction* OnlyCallerOf(const Computation& computation) const;
  // The loop whose body is `body`; null if there is none.
  const Instruction* LoopOf(const Computation& body) const;

 private:
  std::vector<Computation*> control_;
  std::unordered_map<const Computation*, std::vector<Instruction*>> callers_;  // looked up
};

// `CallGraph(module).control()`, for code that asks nothing else.
std::vector<Computation*> ControlComputations(const Module& module);

// Returns how often each computation of the control flow runs in a step, at most 2^63 - 1: bodies
// and conditions as often as `trips` says of their loops, branches that may be taken (RunBy) as
// often as their conditional. Error: that of `trips`.
using TripsOfLoop = std::function<absl::StatusOr<int64_t>(const Instruction& loop)>;
absl::StatusOr<std::unordered_map<const Computation*, int64_t>> ExecutionsOf(
    const CallGraph& calls, const TripsOfLoop& trips);

// Error: a device would execute more instructions than any program is written with, every call
// counted by itself (callees that two branches share double with each level), or computations are
// nested deeper than stages that follow calls have stack for.
absl::Status CheckExtent(const Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_CALL_GRAPH_H_
