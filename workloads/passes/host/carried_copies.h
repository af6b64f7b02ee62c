// An element of a loop's carry lies in one place.
//
// What an iteration leaves in it for the next one takes the place of what the one before left. So
// a copy to the host that reads the old value is over before the kernel begins that makes the new
// one, and a copy from the host that brings the new value starts behind the last kernel that reads
// the old one:
//
//   old = element n of the carry            old = element n of the carry
//   start = copy old to the host            f(old)
//   done                                    start = copy new from the host
//   new = g()                               ...
//   ...                                     done
//
// Sides of an iteration are so lost to transfers of activations that were off-loaded, however much
// of them there is to do: what is made first in an iteration waits for all of it. Another place
// would let them go on; the TPU compiler does not take one. Source: the order of dynamic-slice-start
// and dynamic-update-slice-done in loops that libtpu 0.0.42 compiled for v6e (scans that save q, k, v
// and the attention's output on the host, with three lengths of the MLP).
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_CARRIED_COPIES_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_CARRIED_COPIES_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// Orders, by control dependencies, kernels of a loop and the copies from and to the host beside
// them, which are cut into start and done already. Whether there was anything to order. Copies that
// depend on the kernel otherwise stay as they are: for them the carry was copied.
bool KeepCarriesInPlace(hlo::Instruction* loop);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_CARRIED_COPIES_H_
