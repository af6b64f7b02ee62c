// One simulation of one step: a program on a slice, executed on SystemC modules.
//
// One device of every class is simulated (symmetry/symmetry.h). If the classes turn out too coarse
// on the way they are refined and the simulation begins again, in a fresh SystemC context.
//
// With Folding::kAutomatic a simulation that would take long is less than exact, by an amount that
// the timeline says (FoldingReport::error_bound). After exact_events, passes of loops count as the
// same that are nearly so (fast_forward.h). And where there are many exact classes, coarser ones
// (symmetry/levels.h) are simulated first, in a fraction of the time. What these execute per class
// says what finer ones would: within exact_under events in all the exact classes are simulated, or
// the finest level for which that is enough. The step is that of the last simulation. How far off
// it may be follows from how far it is from the one before, and from how much of the time of
// transfers others on the same links took.
//
// The room answers what happens when a program runs on a slice; `Simulate` is its entry point.
// Beginning with exact classes and giving up after a number of instructions was tried and rejected:
// seconds were thrown away before an approximation that takes a fraction of one, and its error bar
// was far too wide.
#ifndef TPUSIM_SIM_SIMULATE_H_
#define TPUSIM_SIM_SIMULATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "models/isa/program.h"
#include "sim/impairments/impairments.h"
#include "sim/symmetry/symmetry.h"
#include "sim/timeline.h"

namespace tpusim::sim {

inline constexpr int64_t kDefaultMaxEvents = 1'000'000'000;
inline constexpr int64_t kDefaultExactEvents = 1'000'000;
inline constexpr int64_t kDefaultExactUnder = 2'000'000;

struct SimulationOptions {
  // Devices whose spans and counters are kept. Empty = none (totals only).
  std::vector<int32_t> record_devices;
  // The number of spans of an operation's grid steps that are kept per row of a recorded device,
  // neighbours merged (step_merger.h). 0: one per step.
  int64_t record_steps = 0;
  // Keeps the parts of operations: grid steps, and transfers on links with the use of these.
  bool record_work = true;
  Folding folding = Folding::kExact;
  // Execute every step of every kernel and pass of every loop, also those that repeat
  // (chip/tensor_core.h, sim/fast_forward.h).
  bool every_step = false;
  Impairments impairments;
  // The simulation gives up after so many instructions of all devices that are
  // simulated: at a few million per second, this is a matter of minutes.
  int64_t max_events = kDefaultMaxEvents;
  // Instructions that Folding::kAutomatic executes as they are before loops may be nearly the same.
  int64_t exact_events = kDefaultExactEvents;
  // Folding::kAutomatic spends at most so many instructions, and as many starts and ends of
  // transfers, on all simulations behind that of the coarsest classes.
  int64_t exact_under = kDefaultExactUnder;
};

// Errors: a deadlock, with the cycle of waits (device, stream, flag, op); a route
// over a dead link; a step that is too long (longest_step.h); RESOURCE_EXHAUSTED beyond max_events.
absl::StatusOr<Timeline> Simulate(const configs::Config& config, const isa::PodProgram& program,
                                  const SimulationOptions& options);

// One device per distinct program: what is recorded by default.
std::vector<int32_t> Representatives(const isa::PodProgram& program);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SIMULATE_H_
