// Passes that place values in host memory and schedule their transfers.
//
// AssignMemorySpaces finds the values that live on the host, PipelineHostCopies moves transfers of
// loops to a neighbouring iteration, and MakeHostCopiesAsync cuts them into start and done. A copy
// buffer of its own for a carried value would let its transfer overlap with more of the loop; the
// TPU compiler does not take one (carried_copies.h).
//
// The room answers what lies in the memory of the host, and when it moves; `AssignMemorySpaces` is
// its entry point, and the other two passes go by what it writes.
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_HOST_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_HOST_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Writes into layouts which values live on the host.
//
// JAX moves an array between memories with a custom call
// (annotate_device_placement, later MoveToHost and MoveToDevice). Here the result
// gets the memory space of where it goes, and everything that only names it
// (tuples, loop carries, barriers) the same, so that a pass that needs to know reads
// the layout: a value in hlo::kHostSpace takes no HBM, and a placement whose
// operand and result differ is a transfer; others go.
//
// A slice of an array on the host that the device needs is a transfer too, and so is an update of
// such an array with a value from the device (PlaceStacksOnHost): only that part goes over the
// link.
//
// Spaces propagate from arguments and placements to everything that names a value. Returns whether
// anything changed.
absl::StatusOr<bool> AssignMemorySpaces(hlo::Module& module, const PassContext& context);

// Places stacked arrays on the host; returns whether there were any.
//
// What a scan saves for later lies in one array with a slot per iteration: an element of the
// loop's carry into which the body writes with a dynamic-update-slice. JAX only says of what
// is written that it goes to the host (a placement in front of the update); where the array
// itself lives follows from that. Here it is traced from the update back to where it comes
// from, through loop carries and tuples:
//   * zeros that the loop overwrites slot by slot become memory that nothing has written
//     (AllocateBuffer) on the host; nothing is sent there
//   * anything else is placed on the host as it is
// and the placement in front of the update goes: the update itself is the transfer, of one slot.
//
// AssignMemorySpaces places the values in between.
bool PlaceStacksOnHost(const hlo::CallGraph& calls, hlo::ModuleLoops& loops);

// Moves transfers of loops to and from the host into the iteration before or after.
//
// A slot of an array on the host that an iteration reads comes in during the iteration before;
// one that it writes goes out during the next. So a transfer has a whole iteration to hide in,
// wherever in the body its value is made or needed:
//
//   for i: s = slice(stack, i); f(s)         s = slice(stack, 0)
//                                            for i < n - 1: f(s); s = slice(stack, i + 1)
//                                            f(s)
//   for i: v = f(); stack[i] = v             v = f()                       (i = 0)
//                                            for i > 0: stack[i - 1] = v; v = f()
//                                            stack[n - 1] = v
//
// What is in flight across iterations is an element of the carry, and one iteration stands
// before or behind the loop. The TPU compiler leaves the same of scans whose activations are
// off-loaded.
//
// The pass takes loops that count (hlo::LoopFacts::counter) and run at least twice. In them it
// takes slices of arrays that the loop does not change, at places that follow from scalars of the
// carry, and updates of arrays that the loop does nothing else with.
absl::StatusOr<bool> PipelineHostCopies(hlo::Module& module, const PassContext& context);

// Cuts transfers to and from host memory into a start and a done, which the scheduler then pulls
// apart, so that they run beside compute.
//
//   a placement of a whole array   copy-start, copy-done
//   a slice of, or an update into, an array on the host   async-start around it, async-done
//
// The TPU compiler does the same on all chips (dynamic-slice-start and
// dynamic-update-slice-start on S(5), copy-start to and from it).
absl::StatusOr<bool> MakeHostCopiesAsync(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_HOST_H_
