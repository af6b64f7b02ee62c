// The order in which a device executes, chosen to hide asynchronous collectives.
//
// Several orders of a computation are made and replayed with the contention that the
// machine will show (cost/replay.h); the shortest wins. The candidates are those
// of a list scheduler (schedule/list_order.h) that takes transfers to last
//   - as long as alone;
//   - as long as in the replay of the best order so far, beside what is in flight with
//     them there;
//   - so many times longer or shorter that all of them together take a fixed multiple
//     of all compute. These orders change little when a rate of the machine does: what
//     is good for a slower machine stays a candidate for a faster one;
// each of them as it is and with starts as early as limits allow, copies to the host always early
// (FreeEarly). Of orders that take
// equally long the one with early starts is taken: an order that hides a transfer
// with something to spare goes on hiding it when the machine is not as expected.
//
// If what is then live takes more HBM than the TPU compiler allows itself, computations are
// ordered again: of the candidates that take no more memory than there is for them
// (order_memory.h) the shortest wins, or the one that takes least. Starts in such an order
// are marked (kOrderedFor), so that the report can say why something is exposed.
//
// Loop bodies are scheduled before the loops that run them. A loop is then one
// operation, which uses what its body uses on average.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_SCHEDULE_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_SCHEDULE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// The frontend attribute of starts whose computation was ordered for something else than
// the shortest time ("memory").
inline constexpr std::string_view kOrderedFor = "ordered_for";

// Its context must have costs.
absl::StatusOr<bool> Schedule(hlo::Module& module, const PassContext& context);

// Makes asynchronous collectives that nothing covers synchronous again.
//
// The steps of an all-gather that the SparseCores do not run are carried by the loops of
// matrix products. Where the schedule put no product between its start and its done
// nothing carries them, and the TPU compiler executes it as a whole where the done is.
// So does this pass, which leaves on it the mark that the TPU compiler leaves: the name
// that the start had. Permutes, copies and what is off-loaded move by themselves: they
// stay asynchronous even if nothing runs meanwhile.
//
// Of computations that are scheduled; their schedules stay up to date.
absl::StatusOr<bool> DemoteAsync(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_SCHEDULE_H_
