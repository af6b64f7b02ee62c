// Which lines of the source program the fused kernels of a module cover.
#ifndef TPUSIM_WORKLOADS_LOWERING_KERNEL_PLACES_H_
#define TPUSIM_WORKLOADS_LOWERING_KERNEL_PLACES_H_

#include "models/isa/place.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// Of fusions; what only renames, widens or repeats values covers nothing. Scopes are whole
// op_names.
isa::PlacesOfKernels PlacesOfFusions(const hlo::Module& module);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_KERNEL_PLACES_H_
