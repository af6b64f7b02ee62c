// Finds the instructions that move data between the memories of device and host.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_HOST_TRANSFER_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_HOST_TRANSFER_H_

#include <optional>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

enum class HostTransfer { kToHost, kFromHost };

// Returns the direction of a placement, of a dynamic slice of an array on the host for the device,
// of an update of such an array from the device, of a copy between both, or of the start of one of
// them. nullopt: another instruction, or operand and result are on one side.
std::optional<HostTransfer> HostTransferOf(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_HOST_TRANSFER_H_
