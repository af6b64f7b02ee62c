// Which arrays live in VMEM, or in CMEM on the chips that have it.
//
// In the manner of XLA's memory-space assignment: of all arrays that kernels read, those
// come first that gain most by being in the other memory, per square root of their size
// (a large array does not keep out many small ones), loops counted five times. One that a
// kernel makes is there from the beginning if it fits until its last reader, and is copied
// to HBM beside what runs then if something else needs it; one that is in HBM is
// prefetched for the kernels that gain by it, where HBM has time for that beside the
// kernels before. What does not fit stays in HBM. Windows of kernels take their part of
// VMEM. Fragmentation is not modelled.
//
// A module in which something is in VMEM or CMEM already comes out of a compiler that
// has placed its arrays: they stay where they are.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_MEMORY_SPACE_ASSIGNMENT_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_MEMORY_SPACE_ASSIGNMENT_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// The module must be scheduled, the context must have costs. Error: something is in CMEM
// and the chip has none.
absl::StatusOr<bool> AssignMemory(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_MEMORY_SPACE_ASSIGNMENT_H_
