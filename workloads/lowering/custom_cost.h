// What one call of an opaque kernel costs.
//
// A custom call says nothing about its work. Three sources, first match wins:
// what the user or the exporter stated (written onto the instruction by
// StateCustomCosts), the cost estimate that a Pallas kernel carries in its
// backend_config, and nothing: then there is no rule.
#ifndef TPUSIM_WORKLOADS_LOWERING_CUSTOM_COST_H_
#define TPUSIM_WORKLOADS_LOWERING_CUSTOM_COST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir.h"

namespace tpusim::lowering {

struct CustomCost {
  Flops flops{0};
  Flops transcendentals{0};
  Bytes bytes{0};  // read and written
};

struct StatedCost {
  std::string name;  // of an instruction or of a Pallas kernel; may be a glob
  CustomCost cost;
};

// Error (no rule): no cost is known; the message says how to state one.
absl::StatusOr<CustomCost> CustomCostOf(const hlo::Instruction& custom_call);

// Writes costs onto the custom calls whose instruction name, kernel name or last
// part of the scope matches; the first match wins. Returns how many calls each of
// `costs` is written to.
std::vector<int64_t> StateCustomCosts(hlo::Module& module, const std::vector<StatedCost>& costs);

// Custom calls that are the k largest of the last dimension.
bool IsTopKCall(const hlo::Instruction& instruction);
// The first half of an approximate top-k: the best of every so many candidates.
bool IsPartialReduceCall(const hlo::Instruction& instruction);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_CUSTOM_COST_H_
