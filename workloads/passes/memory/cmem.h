// Which arrays live in CMEM, on the chips that have it.
//
// What the TPU compiler's own programs for v4 show: every array that is made and used
// up inside a program is in CMEM if it fits, and results are not. So a candidate here
// is the result (or an element of a tuple) of an operation that runs as a compiler-made
// kernel, read by such kernels of the same computation only. Arguments, results, what
// loops carry or branches take, what collectives, custom calls and updates in place
// read or write stay in HBM. (Prefetches of arguments, which that compiler also does,
// and carries of loops in CMEM are left out.)
//
// Candidates take their place greedily, where their whole padded size fits beside what
// lives there from the instruction that makes them to their last reader, callers and
// callees counted in. First come those that gain most, in the measure of XLA's
// memory-space assignment: reads x sqrt(size), times five per loop around them. (It
// divides the saved time by the root of the size, so that a large array does not keep
// out many small ones.) Fragmentation is not modelled.
//
// A module in which something is in VMEM or CMEM already comes out of a compiler that
// has placed its arrays: they stay where they are.
#ifndef TPUSIM_WORKLOADS_PASSES_CMEM_H_
#define TPUSIM_WORKLOADS_PASSES_CMEM_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// The module must be scheduled. Error: something is in CMEM and the chip has none.
absl::StatusOr<bool> PlaceInCmem(hlo::Module& module, const PassContext& context);

// Whether anything is in CMEM or could be.
bool MayUseCmem(const hlo::Module& module);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_CMEM_H_
