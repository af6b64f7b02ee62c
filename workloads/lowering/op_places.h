// Finds the lines of the source program that the operations of a module come from.
#ifndef TPUSIM_WORKLOADS_LOWERING_OP_PLACES_H_
#define TPUSIM_WORKLOADS_LOWERING_OP_PLACES_H_

#include "models/isa/place.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// Returns the places of fusions, and of what has no line of its own, such as copies of a compiler:
// where the result is used, or else where the operand is made. In a fusion what only renames,
// widens or repeats values covers nothing. By the names of reports, with scopes that are whole
// op_names.
isa::PlacesOfOps PlacesOfOperations(const hlo::Module& module);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_OP_PLACES_H_
