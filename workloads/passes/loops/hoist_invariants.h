// What every iteration of a loop computes alike is computed once, before the loop.
//
// Worth it is a kernel: products, reduces, elementwise work and the like on arrays that the
// loop only reads. Left inside are scalars (the scalar core has time), what costs nothing
// where it is used (broadcasts, iotas, reshapes, slices), collectives, random numbers, what an
// optimization barrier holds back, and results that take more memory than what they are made
// of: they would live as long as the loop.
#ifndef TPUSIM_WORKLOADS_PASSES_LOOPS_HOIST_INVARIANTS_H_
#define TPUSIM_WORKLOADS_PASSES_LOOPS_HOIST_INVARIANTS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Whether there was any.
absl::StatusOr<bool> HoistInvariants(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LOOPS_HOIST_INVARIANTS_H_
