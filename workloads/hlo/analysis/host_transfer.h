// Which instructions move data between the memories of device and host.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_HOST_TRANSFER_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_HOST_TRANSFER_H_

#include <optional>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

enum class HostTransfer { kToHost, kFromHost };

// A placement, a slice of an array on the host for the device, an update of one from there,
// a copy between both; or the start of one that is asynchronous.
// nullopt: another instruction, or what it takes and makes is on one side.
std::optional<HostTransfer> HostTransferOf(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_HOST_TRANSFER_H_
