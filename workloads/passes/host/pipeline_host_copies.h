// Transfers of loops to and from the host, an iteration apart from what they serve.
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
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_PIPELINE_HOST_COPIES_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_PIPELINE_HOST_COPIES_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// For loops that count (hlo::CounterWithStart) and run at least twice; slices of arrays that
// the loop does not change, at places that follow from scalars of the carry; updates of
// arrays that the loop does nothing else with.
absl::StatusOr<bool> PipelineHostCopies(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_PIPELINE_HOST_COPIES_H_
