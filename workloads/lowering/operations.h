// What the lowering asks of single operations: the streams that carry them, and their categories.
#ifndef TPUSIM_WORKLOADS_LOWERING_OPERATIONS_H_
#define TPUSIM_WORKLOADS_LOWERING_OPERATIONS_H_

#include <cstdint>
#include <string>
#include <unordered_map>

#include "models/isa/program.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// Which stream beside the main one carries what.
//
// Bodies that are queued on one stream run one after the other, so what is in flight
// at the same time needs a stream each: a start takes the first that nothing in flight
// has, and its done gives it back. In a loop, branch or call everything that is in
// flight where it is called counts as well. Copies between HBM and on-chip memories share two
// streams, one per direction: a DMA engine moves them one after the other; those from and to the
// host have further ones. What is off-loaded runs on the SparseCores of the device, of which there
// are only so many: a start takes the one with least in flight.
//
// For every instruction of the computations that a scheduled module runs: the stream of
// what it starts, or that it could use while it holds the main stream itself.
std::unordered_map<const hlo::Instruction*, isa::StreamId> AssignStreams(const hlo::Module& module,
                                                                         int64_t sparse_cores);

// How profiles sort operations.
//
// XProf's hlo_category; of the host's memory: copies that the main stream executes, and waits.
std::string CategoryOf(const hlo::Instruction& instruction);
// Of a copy beside the main stream.
std::string CategoryOf(hlo::HostTransfer transfer);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_OPERATIONS_H_
