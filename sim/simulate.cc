#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <systemc>
#include <utility>

#include "configs/status_macros.h"
#include "models/events/sim_time.h"
#include "models/isa/instruction_count.h"
#include "models/isa/verify.h"
#include "sim/deadlock.h"
#include "sim/longest_step.h"
#include "sim/pod.h"
#include "sim/recorder.h"

namespace tpusim::sim {

namespace {

// An approximate folding has to have so many times fewer classes: it takes two simulations.
constexpr int64_t kWorthwhile = 4;
// Members of a class that run in lockstep meet other transfers than members that run apart, so the
// exact step may lie beyond both simulations of an approximate folding. It lay within 1.5 times of
// what they differ by and 0.7 % of the step where that could be compared (docs/models.md,
// Symmetry); the bound is so many times the difference, and one part in so many of the step.
constexpr int64_t kSkews = 2;
constexpr int64_t kBeyond = 100;

int64_t ClassesOf(const Symmetry& symmetry) { return symmetry.classes().devices.classes(); }

// A simulation with these classes; nullopt: they are too coarse for `refused`.
absl::StatusOr<std::optional<Timeline>> SimulateWith(const configs::Config& config,
                                                     const isa::PodProgram& program,
                                                     const SimulationOptions& options,
                                                     const Symmetry& symmetry,
                                                     std::optional<RouteSet>& refused) {
  // Of an earlier simulation of this process.
  sc_core::sc_get_curr_simcontext()->reset();
  std::optional<InFlight> flights;
  if (!symmetry.Allows(symmetry.all())) flights.emplace(symmetry, program);
  events::Causes causes;
  Recorder recorder(config, program, symmetry.classes(), options.record_devices,
                    options.record_steps, options.record_work);
  Pod pod("pod", config, program, options.impairments, symmetry.classes(), options.every_step,
          flights ? &*flights : nullptr, recorder, &causes);
  pod.LimitEvents(options.max_events);
  if (options.folding == Folding::kAutomatic) pod.TolerateAfter(options.exact_events);
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
  timeline.folding.error_bound = pod.tolerated();
  timeline.critical_path = causes.CriticalPath();
  Picoseconds path(0);
  for (const events::Causes::Part& part : timeline.critical_path) path += part.time;
  TPUSIM_CHECK(timeline.critical_path.empty() || path == timeline.step_time,
               fmt::format("the critical path takes {} of the {} ps of the step", path.value(),
                           timeline.step_time.value()));
  pod.AddBytes(timeline);
  // At their best, transfers leave out links that they cross.
  if (symmetry.classes().overlooked_as == Overlooked::kWorst) pod.CheckInvariants(timeline);
  return timeline;
}

// So many passes of a loop are executed before a steady state can be found.
constexpr int64_t kLeastPasses = 2;

// What the classes execute at least, as far as the program tells.
double LeastEvents(const isa::PodProgram& program, const Symmetry& symmetry) {
  return isa::CountInstructions(program, kLeastPasses).instructions *
         static_cast<double>(ClassesOf(symmetry));
}

// Refines the classes, or overlooks more, until they fit what is in flight together.
// RESOURCE_EXHAUSTED also beyond `most_events` while there are more classes than
// options.most_classes.
absl::StatusOr<Timeline> SimulateFolded(const configs::Config& config,
                                        const isa::PodProgram& program,
                                        const SimulationOptions& options, int64_t most_events,
                                        Symmetry& symmetry) {
  SimulationOptions limited = options;
  for (int64_t simulations = 1;; ++simulations) {
    const bool many = ClassesOf(symmetry) > options.most_classes;
    limited.max_events = many ? std::min(options.max_events, most_events) : options.max_events;
    std::optional<RouteSet> refused;
    absl::StatusOr<std::optional<Timeline>> outcome =
        SimulateWith(config, program, limited, symmetry, refused);
    if (!outcome.ok()) {
      // Devices that an approximation put together may wait for each other.
      if (absl::IsResourceExhausted(outcome.status()) || !symmetry.Retreat()) {
        return outcome.status();
      }
      continue;
    }
    if (std::optional<Timeline>& timeline = *outcome; timeline) {
      timeline->chip_classes = symmetry.classes().chips.classes();
      timeline->folding.device_classes = ClassesOf(symmetry);
      timeline->folding.simulations = simulations;
      timeline->folding.steps = symmetry.steps();
      return *std::move(timeline);
    }
    symmetry.Split(*refused);
  }
}

// The step with what is overlooked at its worst, and how far from it that is with all of it at its
// best.
absl::StatusOr<Timeline> Approximate(const configs::Config& config, const isa::PodProgram& program,
                                     const SimulationOptions& options, Symmetry& symmetry) {
  ASSIGN_OR_RETURN(Timeline timeline,
                   SimulateFolded(config, program, options, options.max_events, symmetry));
  if (!symmetry.approximates()) return timeline;
  FoldingReport& folding = timeline.folding;
  folding.is_approximate = true;
  symmetry.Take(Overlooked::kBest);
  SimulationOptions totals = options;
  totals.record_devices.clear();
  ASSIGN_OR_RETURN(const Timeline best,
                   SimulateFolded(config, program, totals, options.max_events, symmetry));
  folding.simulations += best.folding.simulations;
  folding.ignored_skew =
      std::max(timeline.step_time, best.step_time) - std::min(timeline.step_time, best.step_time);
  folding.error_bound = std::max(folding.error_bound, best.folding.error_bound) +
                        folding.ignored_skew * kSkews + timeline.step_time / kBeyond;
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
  const auto symmetry_with = [&](Folding folding, int64_t most_classes) {
    return Symmetry(config, program, options.impairments, folding, options.record_devices,
                    most_classes);
  };
  if (options.folding == Folding::kApproximate) {
    Symmetry symmetry = symmetry_with(Folding::kApproximate, 1);
    return Approximate(config, program, options, symmetry);
  }
  if (options.folding != Folding::kAutomatic) {
    Symmetry symmetry = symmetry_with(options.folding, 1);
    return SimulateFolded(config, program, options, options.max_events, symmetry);
  }
  Symmetry exact = symmetry_with(Folding::kExact, 1);
  std::optional<Symmetry> approximate;
  // Whether overlooking routes leaves few enough classes.
  const auto approximates = [&] {
    if (!approximate) {
      approximate.emplace(config, program, options.impairments, Folding::kApproximate,
                          options.record_devices, options.most_classes);
    }
    return kWorthwhile * ClassesOf(*approximate) <= ClassesOf(exact);
  };
  if (ClassesOf(exact) > options.most_classes && !approximates()) {
    return SimulateFolded(config, program, options, options.max_events, exact);
  }
  if (ClassesOf(exact) <= options.most_classes ||
      LeastEvents(program, exact) <= static_cast<double>(options.most_events)) {
    absl::StatusOr<Timeline> timeline =
        SimulateFolded(config, program, options, options.most_events, exact);
    if (!absl::IsResourceExhausted(timeline.status()) || ClassesOf(exact) <= options.most_classes ||
        options.most_events >= options.max_events) {
      return timeline;
    }
  }
  if (!approximates()) {
    return SimulateFolded(config, program, options, options.max_events, exact);
  }
  return Approximate(config, program, options, *approximate);
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
