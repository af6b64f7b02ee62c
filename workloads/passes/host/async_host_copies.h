// Transfers to and from the memory of the host run beside compute: each is cut into a start
// and a done, which the scheduler then pulls apart.
//
//   a placement of a whole array   copy-start, copy-done
//   a slice of, or an update into, an array on the host   async-start around it, async-done
//
// The TPU compiler does the same on all chips (dynamic-slice-start and
// dynamic-update-slice-start on S(5), copy-start to and from it).
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_ASYNC_HOST_COPIES_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_ASYNC_HOST_COPIES_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> MakeHostCopiesAsync(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_ASYNC_HOST_COPIES_H_
