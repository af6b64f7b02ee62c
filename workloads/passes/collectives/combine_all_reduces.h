// Makes one all-reduce of many: the gradients of a step are summed together.
//
// All-reduces that do not wait for one another, of one element type, reduction and set of
// groups, become one of several arrays. They are done as late as what waits for them allows, and
// each joins the first that it does not bring above 120 MiB or 256 arrays, else begins a new one.
// Both limits are flags of the TPU compiler (compiler.all_reduce_combined_bytes, .._arrays):
// compiled for v5e, 40 all-reduces of f32[8192,1024] become 13 of three arrays and one of one, 300
// of f32[1024] one of 256 and one of 44; of 100, 30, 10, 60, 25 and 10 MiB, two of 100 + 10 + 10
// and 30 + 60 + 25. A sum that is only rounded afterwards counts with the bytes of what is left:
// three of 50 MiB in f32 that become bf16 are one. Reduce-scatters and all-gathers stay as they
// are.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_ALL_REDUCES_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_ALL_REDUCES_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> CombineAllReduces(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_ALL_REDUCES_H_
