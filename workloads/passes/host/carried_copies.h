// Orders the kernels that overwrite a carried value behind its copy to the host.
//
// A value that one iteration computes and the next one sends to the host has one buffer. The value
// of the iteration before must have been sent before the kernel begins that makes the new one:
//
//   old = element n of the carry
//   start = copy old to the host
//   f()                                    runs beside it
//   done                                   is waited for here
//   new = g()
//
// However much of the iteration there still is to hide in, what is made at its beginning (queries,
// keys and values of a layer) waits for all of it. Another place, and a copy, would spare that; the
// TPU compiler does not take one. Source: the order of dynamic-update-slice-start and -done in
// loops that libtpu 0.0.42 compiled for v6e, three decoders that save q, k, v and more on the host.
//
// On the way back nothing is ordered: the slice lies in a place of its own until a kernel turns it
// into the layout in which it is carried (layout pass), and starts as early as it wants.
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_CARRIED_COPIES_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_CARRIED_COPIES_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// Adds control edges from the dones of copies to the host to kernels of a loop; returns whether it
// added any. Copies that depend on the kernel otherwise stay as they are.
bool SendBeforeOverwriting(hlo::Instruction* loop);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_CARRIED_COPIES_H_
