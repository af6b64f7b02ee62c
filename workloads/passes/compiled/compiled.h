// Passes that read a module as the TPU compiler wrote it (hlo/analysis/compiled.h).
//
// They run on such modules in place of all that optimize. None of them decides anything: what the
// compiler spelled out as the inside of a kernel, because its code generator needs it so, becomes
// the operation that it stands for, with the same operands, in the same place of the order.
//
// The room answers which operations the kernels of a compiled module stand for; `CompiledPipeline`
// (passes.h) runs its passes, of which `TranslateCalls` is the entry point for calls.
#ifndef TPUSIM_WORKLOADS_PASSES_COMPILED_COMPILED_H_
#define TPUSIM_WORKLOADS_PASSES_COMPILED_COMPILED_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Fusions inside of fusions become part of the one around them: a kernel is one level deep. The
// compiler nests those of operands, a bitcast or what computes the operand of a product.
absl::StatusOr<bool> FlattenFusions(hlo::Module& module, const PassContext& context);

// A collective that is carried from kernel to kernel becomes a start and a done.
//
// In async-collective fusion a collective begins in a fusion of its own (`AsyncCollectiveStart`),
// proceeds in the loops of kernels that have its buffers and flags among their operands and
// results, and ends in another (`AsyncCollectiveDone`). The body of each repeats the collective. It
// is one operation that runs beside these kernels: they lose what they carried.
absl::StatusOr<bool> JoinCarriedCollectives(hlo::Module& module, const PassContext& context);

// Fusions of an all-reduce with the slice of each device (`all-reduce-scatter`) become the
// reduce-scatters that they execute: their text shows the arrays before they are cut.
absl::StatusOr<bool> UnwrapReduceScatters(hlo::Module& module, const PassContext& context);

// Turns what SparseCores run into collectives, and calls of the host into one operation.
//
// The compiler calls a computation on them (`call-start`, `async_execution_thread="sparsecore"`),
// once it is said that they are to be ready (`PrepareAsyncCallStart`). A collective becomes the
// start and the done of one that is off-loaded. Gathers, changes of layout and what is several
// operations run on the TensorCore, which the report says: SparseCores of the model run
// collectives.
absl::StatusOr<bool> UnwrapOffLoads(hlo::Module& module, const PassContext& context);

// Makes one program of all slices of what the compiler wrote for one.
//
// It gives a module the groups of the first slice and turns what goes between slices into a send and
// a receive of the network's runtime (megascale). Groups are repeated for the other slices, and the
// two become an asynchronous all-reduce among devices of the same place. Error: a transfer of
// another type.
absl::StatusOr<bool> JoinSlices(hlo::Module& module, const PassContext& context);

// Calls by which the compiler names its own routines become the operations that they execute, or
// the operand where they only say something of it.
absl::StatusOr<bool> TranslateCalls(hlo::Module& module, const PassContext& context);

// An array that the compiler prefetches across programs (`cross_program_prefetch_index`) is in VMEM
// when the program begins, as the step before has left it there. A step does the same for the one
// that follows: it copies the array again from where it was read for the last time, and has ended
// when that has arrived.
absl::StatusOr<bool> BeginPrefetched(hlo::Module& module, const PassContext& context);

// Has kernels take the time that the compiler states for them (`estimated_cycles`), where that is
// asked for.
absl::StatusOr<bool> TakeEstimates(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COMPILED_COMPILED_H_
