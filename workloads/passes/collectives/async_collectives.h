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

namespace tpusim::passes {

// Which kinds are looked at.
struct AsyncOptions {
  bool permutes = true;
  bool all_gathers = true;  // that are not off-loaded
  bool offload = true;
};
absl::StatusOr<bool> MakeCollectivesAsync(hlo::Module& module, const PassContext& context,
                                          const AsyncOptions& options = {});

// The frontend attribute of a collective that was asynchronous (its value: the name of the
// start), until it turned out that nothing covers it.
inline constexpr std::string_view kDemotedFrom = "async_collective_name";

// Why a collective that the main stream waits for is not asynchronous, as half a sentence.
std::string WhySynchronous(const hlo::Instruction& collective, const target::Target& target);

// A matrix product: an asynchronous all-gather moves on while it runs.
bool CarriesGathers(const hlo::Instruction& i);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ASYNC_COLLECTIVES_H_
