#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
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
#include "sim/symmetry/in_flight.h"
#include "sim/symmetry/levels.h"

namespace tpusim::sim {

namespace {

// So few classes are simulated without a prediction.
constexpr int64_t kUnpredictedClasses = 4;
// So many passes of a loop are executed before a steady state can be found.
constexpr int64_t kLeastPasses = 2;
// Events are as many times what the least number of instructions is, or more, where that is all that
// is known: loops that find no steady state, and transfers.
constexpr int64_t kEventsPerInstruction = 8;
// Finer classes execute more than coarser ones, each: steady states are found later. 1.0 to 1.6 times
// as much from one level to the next (docs/models.md, Symmetry); half as much again is predicted.
constexpr double kFinerFactor = 1.5;
// How far the step may be from the exact one (docs/models.md, Symmetry): with classes that a round of
// refinement made, half as far as from the classes of groups; with those, twice as far as from the
// classes of devices, and one part in a hundred. Classes of devices alone were off by up to 1.2 %
// around stragglers, and by up to 6.5 % around degraded links. In any case three parts in a thousand.
constexpr int kDevices = 0, kGroups = 1;  // levels; those above are rounds of refinement
constexpr double kOfRefined = 0.5, kOfGroups = 2;
constexpr double kUnrefined = 0.01, kOfDevices = 0.03, kOfDevicesAndLinks = 0.1;
constexpr double kLeastBound = 0.003;
// Classes of groups are worth so many times exact_under.
constexpr double kWorthOfGroups = 3;

struct Run {
  const configs::Config& config;
  const isa::PodProgram& program;
  const SimulationOptions& options;
};

struct Limits {
  int64_t instructions = kDefaultMaxEvents;
  int64_t flows = std::numeric_limits<int64_t>::max();
};

// As many events in all as exact_under.
Limits Budget(const SimulationOptions& options) {
  return {std::min(options.max_events, options.exact_under), options.exact_under};
}

int64_t ClassesOf(const Symmetry& symmetry) { return symmetry.classes().devices.classes(); }

// One simulation with these classes; nullopt: `flights` has stopped it.
// What it executes is taken from `limits`.
absl::StatusOr<std::optional<Timeline>> SimulateClasses(const Run& run, const Classes& classes,
                                                        Limits& limits, InFlight* flights) {
  const auto& [config, program, options] = run;
  // Of an earlier simulation of this process.
  sc_core::sc_get_curr_simcontext()->reset();
  events::Causes causes;
  Recorder recorder(config, program, classes, options.record_devices, options.record_steps,
                    options.record_work);
  Pod pod("pod", config, program, options.impairments, classes, options.every_step, flights,
          recorder, &causes);
  pod.LimitInstructions(limits.instructions);
  pod.LimitFlows(limits.flows);
  if (options.folding == Folding::kAutomatic) pod.TolerateAfter(options.exact_events);
  // Until nothing is left to happen, or a fault.
  sc_core::sc_start(events::ScTime(kLongestStep), sc_core::SC_EXIT_ON_STARVATION);
  RETURN_IF_ERROR(pod.fault());
  limits.instructions -= pod.instructions();
  limits.flows -= pod.flows();
  if (flights != nullptr && flights->refused()) return std::nullopt;
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
  pod.CheckInvariants(timeline);
  timeline.chip_classes = classes.chips.classes();
  timeline.folding.device_classes = classes.devices.classes();
  return timeline;
}

// Whether so many classes of devices are to be simulated.
using MaySimulate = std::function<bool(int64_t classes)>;

// Refines the classes until they allow what is in flight together. RESOURCE_EXHAUSTED beyond
// `limits`, or if `may` says so of the classes. `before`: simulations of coarser classes.
absl::StatusOr<Timeline> SimulateExact(const Run& run, Limits limits, const MaySimulate& may,
                                       Symmetry& symmetry, int64_t before = 0) {
  for (int64_t simulations = before + 1;; ++simulations) {
    symmetry.TryOrbits();
    if (!may(ClassesOf(symmetry))) return absl::ResourceExhaustedError("too many classes");
    std::optional<InFlight> flights;
    if (!symmetry.Allows(symmetry.all())) flights.emplace(symmetry, run.program);
    ASSIGN_OR_RETURN(
        std::optional<Timeline> timeline,
        SimulateClasses(run, symmetry.classes(), limits, flights ? &*flights : nullptr));
    if (timeline) {
      timeline->folding.simulations = simulations;
      timeline->folding.steps = symmetry.steps();
      return *std::move(timeline);
    }
    symmetry.Split(*flights->refused());
  }
}

absl::StatusOr<Timeline> SimulateExact(const Run& run, Symmetry& symmetry, int64_t before = 0) {
  const auto always = [](int64_t) { return true; };
  return SimulateExact(run, {run.options.max_events}, always, symmetry, before);
}

// Of coarser classes, level by level.
class Approximation {
 public:
  Approximation(const Run& run, const Symmetry& exact)
      : run_(run), exact_(exact), levels_(run.config, run.program, run.options.impairments) {}

  bool HasFewerClasses() { return levels_.DeviceClasses(kGroups) < ClassesOf(exact_); }
  // Simulates the levels that are cheap. RESOURCE_EXHAUSTED as ever; other errors of coarser classes
  // need not be those of the exact ones.
  absl::Status Begin();
  // The finest level that is predicted to have at most exact_under events, if there is one.
  void Refine();
  // From what has been simulated, what so many classes execute.
  double Predicted(int64_t classes) const {
    return kFinerFactor * static_cast<double>(classes) * static_cast<double>(last_->events) /
           static_cast<double>(last_->folding.device_classes);
  }
  int64_t simulations() const { return simulations_; }
  // The step of the finest level, with what is known of its error.
  Timeline Take() &&;

 private:
  // In picoseconds, how far the step may be from the exact one.
  double Bound() const;
  // What tells the classes apart.
  std::string Means() const;
  absl::StatusOr<Timeline> Simulate(int level, bool records, const Limits& limits);

  const Run& run_;
  const Symmetry& exact_;
  Levels levels_;
  int64_t simulations_ = 0;
  std::optional<Picoseconds> coarser_;  // the step of the level simulated before the last
  std::optional<Timeline> last_;
  int level_ = -1;  // of last_
};

absl::StatusOr<Timeline> Approximation::Simulate(int level, bool records, const Limits& limits) {
  SimulationOptions options = run_.options;
  if (!records) {
    options.record_devices.clear();
    options.record_work = false;
  }
  ++simulations_;
  Limits left = limits;
  ASSIGN_OR_RETURN(std::optional<Timeline> timeline,
                   SimulateClasses({run_.config, run_.program, options}, levels_.ClassesAt(level),
                                   left, /*flights=*/nullptr));
  return *std::move(timeline);
}

absl::Status Approximation::Begin() {
  const Limits all{run_.options.max_events};
  const int64_t groups = levels_.DeviceClasses(kGroups);
  const bool differ = levels_.DeviceClasses(kDevices) < groups;
  level_ = differ ? kDevices : kGroups;
  ASSIGN_OR_RETURN(last_, Simulate(level_, /*records=*/true, all));
  const double most = kWorthOfGroups * static_cast<double>(run_.options.exact_under);
  if (!differ || (run_.options.folding == Folding::kAutomatic && Predicted(groups) > most)) {
    return absl::OkStatus();
  }
  coarser_ = last_->step_time;
  level_ = kGroups;
  ASSIGN_OR_RETURN(last_, Simulate(level_, /*records=*/true, all));
  return absl::OkStatus();
}

void Approximation::Refine() {
  if (level_ < kGroups) return;
  int finest = level_;
  for (int level = level_ + 1;; ++level) {
    const int64_t classes = levels_.DeviceClasses(level);
    if (classes <= levels_.DeviceClasses(level - 1) || classes >= ClassesOf(exact_)) break;
    if (Predicted(classes) > static_cast<double>(run_.options.exact_under)) break;
    finest = level;
  }
  if (finest == level_) return;
  absl::StatusOr<Timeline> finer = Simulate(finest, /*records=*/true, Budget(run_.options));
  // Beyond the budget, or a circle of waits: what there is stands.
  if (!finer.ok()) return;
  coarser_ = last_->step_time;
  last_ = *std::move(finer);
  level_ = finest;
}

double Approximation::Bound() const {
  const auto step = static_cast<double>(last_->step_time.value());
  if (level_ == kDevices) {
    return step * (run_.options.impairments.links.empty() ? kOfDevices : kOfDevicesAndLinks);
  }
  const auto skew = static_cast<double>(last_->folding.ignored_skew.value());
  const double bound = level_ == kGroups ? kOfGroups * skew + kUnrefined * step : kOfRefined * skew;
  return std::max(bound, kLeastBound * step);
}

std::string Approximation::Means() const {
  if (level_ == kDevices) return "what devices are";
  if (level_ == kGroups) return "what devices and those in their groups are";
  return fmt::format("that, and their partners, in {} round{}", level_ - kGroups,
                     level_ == kGroups + 1 ? "" : "s");
}

Timeline Approximation::Take() && {
  FoldingReport& folding = last_->folding;
  folding.is_approximate = true;
  folding.simulations = simulations_;
  folding.steps = exact_.steps();
  folding.steps.push_back({Means(), folding.device_classes});
  if (coarser_) {
    folding.ignored_skew =
        std::max(last_->step_time, *coarser_) - std::min(last_->step_time, *coarser_);
  }
  folding.error_bound += Picoseconds(static_cast<int64_t>(std::ceil(Bound())));
  return *std::move(last_);
}

absl::StatusOr<Timeline> SimulateApproximately(const Run& run) {
  Symmetry exact(run.config, run.program, run.options.impairments, /*folds=*/true,
                 run.options.record_devices);
  Approximation approximation(run, exact);
  if (!approximation.HasFewerClasses()) return SimulateExact(run, exact);
  const absl::Status begun = approximation.Begin();
  // Devices that are put together may wait for each other.
  if (!begun.ok() && !absl::IsResourceExhausted(begun)) {
    return SimulateExact(run, exact, approximation.simulations());
  }
  RETURN_IF_ERROR(begun);
  return std::move(approximation).Take();
}

absl::StatusOr<Timeline> SimulateAutomatically(const Run& run) {
  const SimulationOptions& options = run.options;
  const auto most = static_cast<double>(options.exact_under);
  Symmetry exact(run.config, run.program, options.impairments, /*folds=*/true,
                 options.record_devices);
  exact.TryOrbits();
  const double least = isa::CountInstructions(run.program, kLeastPasses).instructions;
  const auto is_small = [&](int64_t classes) {
    return least * static_cast<double>(classes) * kEventsPerInstruction <= most;
  };
  const auto are_few = [](int64_t classes) { return classes <= kUnpredictedClasses; };
  if (are_few(ClassesOf(exact)) || is_small(ClassesOf(exact))) {
    // What few classes take is no more than coarser ones would.
    const Limits limits = is_small(ClassesOf(exact)) ? Budget(options) : Limits{options.max_events};
    absl::StatusOr<Timeline> timeline = SimulateExact(
        run, limits, [&](int64_t classes) { return are_few(classes) || is_small(classes); }, exact);
    if (!absl::IsResourceExhausted(timeline.status()) || are_few(ClassesOf(exact))) return timeline;
  }
  Approximation approximation(run, exact);
  // As where every device has a program of its own.
  if (!approximation.HasFewerClasses()) return SimulateExact(run, exact);
  const absl::Status begun = approximation.Begin();
  if (absl::IsResourceExhausted(begun)) return begun;
  if (!begun.ok()) return SimulateExact(run, exact, approximation.simulations());
  const auto is_cheap = [&](int64_t classes) { return approximation.Predicted(classes) <= most; };
  if (is_cheap(ClassesOf(exact))) {
    absl::StatusOr<Timeline> timeline =
        SimulateExact(run, Budget(options), is_cheap, exact, approximation.simulations());
    if (!absl::IsResourceExhausted(timeline.status())) return timeline;
  }
  approximation.Refine();
  return std::move(approximation).Take();
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
  const Run run{config, program, options};
  switch (options.folding) {
    case Folding::kApproximate:
      return SimulateApproximately(run);
    case Folding::kAutomatic:
      return SimulateAutomatically(run);
    case Folding::kOff:
    case Folding::kExact:
      break;
  }
  Symmetry symmetry(config, program, options.impairments, options.folding == Folding::kExact,
                    options.record_devices);
  return SimulateExact(run, symmetry);
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
