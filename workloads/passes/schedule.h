// The order in which a device executes, chosen to hide asynchronous collectives.
//
// A list scheduler over simulated time, from the end of a computation to its
// beginning: so nothing is started earlier than it takes to be hidden, and what a
// transfer brings does not wait in memory for longer than that. Among the
// instructions whose users are all placed it takes, first match wins:
//   1. what costs no time (tuples, parameters, bitcasts);
//   2. a done, while the limit of transfers of its kind in flight allows;
//   3. a start that is as far ahead of its done as the transfer takes;
//   4. the compute instruction with the longest way from the beginning, the later
//      one in the original order on ties; but while the next start has a longer way
//      than it, only one that does not delay that start;
//   5. the start that is closest to that (a stall).
// Loop bodies are scheduled before the loops that run them.
//
// Limits, per computation: five collective-permutes and one all-gather, the
// defaults of the TPU compiler's scheduler; as many off-loaded collectives as the
// device has SparseCores; five copies. A gather is carried by the loops of matrix
// products; one that would be in flight beside no product at all is made
// synchronous again.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir.h"
#include "workloads/passes/target.h"

namespace tpusim::passes {

// What the scheduler believes about durations. The lowering provides it, from
// the same kernels and collective algorithms that it will emit.
struct LatencyEstimator {
  // How long the main stream is busy with an instruction (not:
  // while, conditional, call, whose computations are added up).
  std::function<absl::StatusOr<Picoseconds>(const hlo::Instruction&)> busy;
  // From a start to the earliest done without a stall.
  std::function<absl::StatusOr<Picoseconds>(const hlo::Instruction& start)> in_flight;
  // Trips of a while loop, stated or derived.
  std::function<absl::StatusOr<int64_t>(const hlo::Instruction& loop)> trips;
};

absl::Status Schedule(hlo::Module& module, const Target& target, const LatencyEstimator& estimator);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_H_
