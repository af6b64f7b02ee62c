// Makes asynchronous collectives that nothing covers synchronous again.
//
// The steps of an all-gather that the SparseCores do not run are carried by the loops of
// matrix products. Where the schedule put no product between its start and its done
// nothing carries them, and the TPU compiler executes it as a whole where the done is.
// So does this pass, which leaves on it the mark that the TPU compiler leaves: the name
// that the start had. Permutes, copies and what is off-loaded move by themselves: they
// stay asynchronous even if nothing runs meanwhile.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_DEMOTE_ASYNC_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_DEMOTE_ASYNC_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Of computations that are scheduled; their schedules stay up to date.
absl::StatusOr<bool> DemoteAsync(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_DEMOTE_ASYNC_H_
