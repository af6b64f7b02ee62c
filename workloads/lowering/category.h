// How profiles sort operations.
#ifndef TPUSIM_WORKLOADS_LOWERING_CATEGORY_H_
#define TPUSIM_WORKLOADS_LOWERING_CATEGORY_H_

#include <string>

#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// XProf's hlo_category; of the host's memory: copies that the main stream executes, and waits.
std::string CategoryOf(const hlo::Instruction& instruction);
// Of a copy beside the main stream.
std::string CategoryOf(hlo::HostTransfer transfer);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_CATEGORY_H_
