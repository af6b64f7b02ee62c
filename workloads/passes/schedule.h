// The order in which a device executes, chosen to hide asynchronous collectives.
//
// A forward list scheduler over simulated time. Among the instructions whose
// operands are done it takes, first match wins:
//   1. what costs no time (tuples, parameters, bitcasts);
//   2. a start, while the target's limit of transfers in flight allows;
//   3. a done whose transfer has arrived;
//   4. the compute instruction with the longest way to the end, original order
//      on ties;
//   5. the done that arrives first (a stall).
// Loop bodies are scheduled before the loops that run them.
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
