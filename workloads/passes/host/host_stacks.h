// Stacked arrays that live on the host.
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
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_HOST_STACKS_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_HOST_STACKS_H_

#include "workloads/hlo/analysis/call_graph.h"

namespace tpusim::passes {

// Whether there was any. What lies between, memory spaces follow (AssignMemorySpaces).
bool PlaceStacksOnHost(const hlo::CallGraph& calls);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_HOST_STACKS_H_
