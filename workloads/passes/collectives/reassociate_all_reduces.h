// R(a) + R(b) is R(a + b): one all-reduce instead of two.
//
// The gradient of a value that is used twice is a sum of two gradients, each summed over devices.
// Sums, products, minima, maxima and bit operations alike, wherever nothing else reads what the
// all-reduces make. Rounding may differ, as with every other order of a sum.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REASSOCIATE_ALL_REDUCES_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REASSOCIATE_ALL_REDUCES_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> ReassociateAllReduces(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REASSOCIATE_ALL_REDUCES_H_
