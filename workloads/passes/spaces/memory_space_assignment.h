// Assigns arrays to VMEM, or to another on-chip memory where a chip has one.
//
// In the manner of XLA's memory-space assignment: of all arrays that kernels read, those
// come first that gain most by being in the other memory, per square root of their size
// (a large array does not keep out many small ones), loops counted five times. One that a
// kernel makes is there from the beginning if it fits until its last reader, and is copied
// to HBM beside what runs then if something else needs it; one that is in HBM is
// prefetched for the kernels that gain by it, beside kernels before that take as long. What
// does not fit stays in HBM. Windows of kernels take their part of VMEM. Fragmentation is not
// modelled.
//
// Arrays that the program itself puts there (S(1) or S(3) in their layouts) stay, take their room
// from their making to their last reader, and the rest is assigned around them. (A module that
// comes scheduled was compiled: it keeps all of its places, and this pass is not run,
// compiler/session.cc.)
//
// The room answers which arrays lie in on-chip memory; `AssignMemory` is its entry point. Copying
// the graph of a computation for every trial was tried and rejected: all trials of a replay share
// one. Copies that kernels wait for too long are left out.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_MEMORY_SPACE_ASSIGNMENT_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_MEMORY_SPACE_ASSIGNMENT_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Whether something is in an on-chip memory.
bool HasPlaces(const hlo::Module& module);

// The module must be scheduled, the context must have costs. Error: something is in a memory
// that the chip does not have, or more is placed than there is.
absl::StatusOr<bool> AssignMemory(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_MEMORY_SPACE_ASSIGNMENT_H_
