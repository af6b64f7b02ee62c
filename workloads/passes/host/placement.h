// Which values live on the host.
//
// JAX moves an array between memories with a custom call
// (annotate_device_placement, later MoveToHost and MoveToDevice). Here the result
// gets the memory space of where it goes, and everything that only names it
// (tuples, loop carries, barriers) the same, so that a pass that needs to know reads
// the layout: a value in hlo::kHostSpace takes no HBM, and a placement whose
// operand and result differ is a transfer; others go.
//
// So is a slice of an array on the host that is wanted on the device, and an update of such
// an array with a value from the device (host_stacks.h): only the part goes over the link.
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_PLACEMENT_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_PLACEMENT_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// From the arguments and from the placements to all that only names a value. Whether anything
// changed.
absl::StatusOr<bool> AssignMemorySpaces(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_PLACEMENT_H_
