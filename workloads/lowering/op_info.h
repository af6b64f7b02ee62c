// Describes HLO operations for reports: their names, their categories in profiles, what they
// cost.
#ifndef TPUSIM_WORKLOADS_LOWERING_OP_INFO_H_
#define TPUSIM_WORKLOADS_LOWERING_OP_INFO_H_

#include "absl/status/statusor.h"
#include "models/isa/program_info.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

isa::OpInfo InfoOf(const hlo::Instruction& instruction);
// Describes what runs beside the main stream: the whole transfer, not just its start.
isa::OpInfo InfoOfWhole(const hlo::Instruction& start);
absl::StatusOr<isa::OpInfo> InfoOfKernel(const hlo::Instruction& instruction,
                                         const timing::KernelTraffic& traffic);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_OP_INFO_H_
