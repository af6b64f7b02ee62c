// Assigns transfers to the streams beside the main one.
//
// Bodies that are queued on one stream run one after the other, so what is in flight
// at the same time needs a stream each: a start takes the first that nothing in flight
// has, and its done gives it back. In a loop, branch or call everything that is in
// flight where it is called counts as well. Copies between HBM and on-chip memories share two
// streams, one per direction: a DMA engine moves them one after the other; those from and to the
// host have further ones. What is off-loaded runs on the SparseCores of the device, of which there
// are only so many: a start takes the one with least in flight.
#ifndef TPUSIM_WORKLOADS_LOWERING_STREAMS_H_
#define TPUSIM_WORKLOADS_LOWERING_STREAMS_H_

#include <cstdint>
#include <unordered_map>

#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// Returns, for every instruction of the computations that a scheduled module runs, the stream of
// what it starts, or that it could use while it holds the main stream itself.
std::unordered_map<const hlo::Instruction*, isa::StreamId> AssignStreams(const hlo::Module& module,
                                                                         int64_t sparse_cores);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_STREAMS_H_
