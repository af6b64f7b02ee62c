#include "sim/simulate.h"

#include <fmt/format.h>

#include <optional>
#include <systemc>
#include <utility>

#include "configs/status_macros.h"
#include "models/events/sim_time.h"
#include "models/isa/verify.h"
#include "sim/deadlock.h"
#include "sim/longest_step.h"
#include "sim/pod.h"
#include "sim/recorder.h"

namespace tpusim::sim {

namespace {

// A simulation with these classes; nullopt: they are too coarse for `refused`.
absl::StatusOr<std::optional<Timeline>> SimulateWith(const configs::Config& config,
                                                     const isa::PodProgram& program,
                                                     const SimulationOptions& options,
                                                     const Symmetry& symmetry,
                                                     std::optional<RouteSet>& refused) {
  // Of an earlier simulation of this process.
  sc_core::sc_get_curr_simcontext()->reset();
  std::optional<InFlight> flights;
  if (symmetry.approximates() || !symmetry.Allows(symmetry.all())) {
    flights.emplace(symmetry, program);
  }
  events::Causes causes;
  Recorder recorder(config, program, symmetry.classes(), options.record_devices,
                    options.record_steps, options.record_work);
  Pod pod("pod", config, program, options.impairments, symmetry.classes(), options.every_step,
          flights ? &*flights : nullptr, recorder, &causes);
  pod.LimitEvents(options.max_events);
  // Until nothing is left to happen, or a fault.
  sc_core::sc_start(events::ScTime(kLongestStep), sc_core::SC_EXIT_ON_STARVATION);
  RETURN_IF_ERROR(pod.fault());
  if (flights && flights->refused()) {
    refused = flights->refused();
    return std::nullopt;
  }
  if (pod.passes_ahead() || sc_core::sc_pending_activity() || pod.network().active_flows() > 0) {
    return TooLong(pod, config, program);
  }
  RETURN_IF_ERROR(CheckFinished(pod, program));

  Timeline timeline = recorder.Finish();
  timeline.events = pod.events();
  timeline.critical_path = causes.CriticalPath();
  Picoseconds path(0);
  for (const events::Causes::Part& part : timeline.critical_path) path += part.time;
  TPUSIM_CHECK(timeline.critical_path.empty() || path == timeline.step_time,
               fmt::format("the critical path takes {} of the {} ps of the step", path.value(),
                           timeline.step_time.value()));
  pod.AddBytes(timeline);
  pod.CheckInvariants(timeline);
  timeline.folding.ignored_skew = symmetry.Skew() + (flights ? flights->Spread() : Picoseconds(0));
  return timeline;
}

}  // namespace

absl::StatusOr<Timeline> Simulate(const configs::Config& config, const isa::PodProgram& program,
                                  const SimulationOptions& options) {
  RETURN_IF_ERROR(isa::Verify(program, config.topology));
  for (const int32_t device : options.record_devices) {
    if (device < 0 || device >= program.devices()) {
      return UserError(fmt::format("device {} cannot be recorded: the slice has devices 0 to {}",
                                   device, program.devices() - 1));
    }
  }
  // SystemC talks to stdout about itself, which belongs to our results.
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  TPUSIM_CHECK(sc_core::sc_get_time_resolution() == sc_core::sc_time(1, sc_core::SC_PS),
               "SystemC does not count picoseconds");

  RETURN_IF_ERROR(CheckRoutes(program, options.impairments));
  Symmetry symmetry(config, program, options.impairments, options.folding, options.record_devices);
  if (options.classes_found) options.classes_found(symmetry.classes().devices.classes());
  for (int64_t simulations = 1;; ++simulations) {
    std::optional<RouteSet> refused;
    absl::StatusOr<std::optional<Timeline>> outcome =
        SimulateWith(config, program, options, symmetry, refused);
    if (!outcome.ok()) {
      // Devices that an approximation put together may wait for each other.
      if (absl::IsResourceExhausted(outcome.status()) || !symmetry.Retreat()) {
        return outcome.status();
      }
      continue;
    }
    if (std::optional<Timeline>& timeline = *outcome; timeline) {
      timeline->chip_classes = symmetry.classes().chips.classes();
      timeline->folding.device_classes = symmetry.classes().devices.classes();
      timeline->folding.simulations = simulations;
      timeline->folding.steps = symmetry.steps();
      return *std::move(timeline);
    }
    symmetry.Split(*refused);
  }
}

std::vector<int32_t> Representatives(const isa::PodProgram& program) {
  std::vector<int32_t> first(program.programs.size(), -1);
  std::vector<int32_t> devices;
  for (int32_t d = 0; d < program.devices(); ++d) {
    int32_t& seen = first[program.program_of_device[d]];
    if (seen >= 0) continue;
    seen = d;
    devices.push_back(d);
  }
  return devices;
}

}  // namespace tpusim::sim
