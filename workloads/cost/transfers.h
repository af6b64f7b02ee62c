// Copies between the memories of one device: HBM, VMEM and the host's.
#ifndef TPUSIM_WORKLOADS_COST_TRANSFERS_H_
#define TPUSIM_WORKLOADS_COST_TRANSFERS_H_

#include "absl/status/statusor.h"
#include "configs/chip.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::cost {

// Returns what a copy-start, an async-start around a copy, a slice or an update, a placement, or a
// slice or an update of an array on the host moves; an empty body if it stays where it is.
// Error (no rule): an async-start around something else.
absl::StatusOr<isa::Body> TransferOf(const hlo::Instruction& instruction,
                                     const target::Target& target);

// Alone on its chip.
Picoseconds TimeOfTransfer(const configs::ChipParams& chip, const isa::Body& transfer);

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_TRANSFERS_H_
