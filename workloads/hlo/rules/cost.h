// Cost rules: arithmetic and bytes of one instruction, per opcode.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_COST_H_
#define TPUSIM_WORKLOADS_HLO_RULES_COST_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Arithmetic of one execution. Transcendentals are counted in both.
// Instructions that call computations (while, fusion) count one call.
struct Cost {
  Flops flops{0};
  Flops transcendentals{0};
  Bytes bytes_read{0};
  Bytes bytes_written{0};
};

// Error (no rule): an opcode without a cost rule, named with its source line.
absl::StatusOr<Cost> CostOf(const Instruction& instruction);
absl::StatusOr<Cost> CostOf(const Computation& computation);

// The cost that a Pallas kernel carries in its backend_config. nullopt: none, one
// that cannot be read, or one of zeros, which says nothing.
struct CarriedEstimate {
  Cost cost;
  Bytes remote{0};  // sent to other devices
};
std::optional<CarriedEstimate> CarriedCost(const Instruction& custom_call);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_COST_H_
