// Makes collectives asynchronous where the chip runs them beside compute: each is
// cut into a start and a done, which the scheduler then pulls apart.
//
//   collective-permute   always
//   off-loaded           all-gathers, all-reduces and reduce-scatters of at least
//                        chip.sparse_core.offload_*_bytes per device: the SparseCores
//                        run them (`async-start` on the thread "sparsecore")
//   all-gather           else, where the chip's compiler has any (compiler.gathers_in_flight): its
//                        steps are carried by the loops of matrix products
//
// Others stay synchronous, as the TPU compiler leaves them by default (async
// all-reduce, reduce-scatter and all-to-all are disabled).
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ASYNC_COLLECTIVES_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ASYNC_COLLECTIVES_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"
#include "workloads/target/async_form.h"

namespace tpusim::passes {

absl::StatusOr<bool> MakeCollectivesAsync(hlo::Module& module, const PassContext& context,
                                          const target::AsyncOptions& options = {});

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ASYNC_COLLECTIVES_H_
