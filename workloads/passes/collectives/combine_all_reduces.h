// Makes one all-reduce of many: the gradients of a step are summed together.
//
// All-reduces that do not wait for one another, of one element type, reduction and set of
// groups, become one of several arrays, in the order of the program: the first that depends on the
// ones before it, or that would make too much of them, begins a new one. Compiled for v5e, 40
// all-reduces of f32[8192,1024] become 13 of three and one, and 300 of f32[1024] become one of 256
// and one of 44: up to 120 MiB and 256 arrays. Reduce-scatters and all-gathers that a program asks
// for stay as they are.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_ALL_REDUCES_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_ALL_REDUCES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Defaults of the TPU compiler (xla_jf_crs_combiner_threshold_in_bytes, .._count).
struct CombineOptions {
  Bytes bytes{120 * kMiB};
  int64_t count = 256;
};
absl::StatusOr<bool> CombineAllReduces(hlo::Module& module, const PassContext& context,
                                       const CombineOptions& options = {});

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_ALL_REDUCES_H_
