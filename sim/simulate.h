// One simulation of one step: a program on a slice, executed on SystemC modules.
//
// SystemC elaborates once per process, so Simulate may be called once per
// process; a second call is a broken invariant.
#ifndef TPUSIM_SIM_SIMULATE_H_
#define TPUSIM_SIM_SIMULATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "models/isa/program.h"
#include "sim/impairments.h"
#include "sim/timeline.h"

namespace tpusim::sim {

struct SimulationOptions {
  // Devices whose spans and counters are kept. Empty = none (totals only).
  std::vector<int32_t> record_devices;
  // Simulate one device, link and host link of every class (symmetry/classes.h).
  // The result is the same; off simulates every one.
  bool fold = true;
  // Execute every step of every kernel and ring, or pass over those that repeat
  // (chip/tensor_core.h, sim/lockstep.h).
  bool every_step = false;
  Impairments impairments;
};

// Errors: a deadlock, with the cycle of waits (device, stream, flag, op); a route
// over a dead link.
absl::StatusOr<Timeline> Simulate(const configs::Config& config, const isa::PodProgram& program,
                                  const SimulationOptions& options);

// One device per distinct program: what is recorded by default.
std::vector<int32_t> Representatives(const isa::PodProgram& program);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SIMULATE_H_
