// Joins the two halves of asynchronous operations: start and done become the one
// operation that they were, in the place of the done.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_JOIN_ASYNC_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_JOIN_ASYNC_H_

#include <cstdint>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Joins collectives, copies, and what async-start wraps. Sends and receives, which have no
// other form, stay, as do pairs with control edges. Returns how many were joined.
int64_t JoinAsync(Module& module);

// Joins what nothing of the chip runs beside the TensorCore: any other operation than a collective,
// a copy or a slice, unless it is for another thread. It runs where its result is waited for.
int64_t JoinAsyncCompute(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_JOIN_ASYNC_H_
