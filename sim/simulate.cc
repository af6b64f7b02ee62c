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
// as much from one level to the next (docs/models.md, Symmetry), five times and more where groups
// share links; a quarter more is predicted, and what takes more is given up.
constexpr double kFinerFactor = 1.25;
constexpr int kDevices = 0, kGroups = 1;  // levels; those above are rounds of refinement

// Bounds on the distance of the step from the exact one, as parts of it (docs/models.md, Symmetry).
// Members of a class differ in how they share links, and in how long they wait for others.
// `sharing` is the part of the time of transfers that others on the same links took.
//   - Classes of devices alone were off by up to 2.5 % at a sharing of 0.42, by 1.5 % at 0.53, by
//     0.2 % at 0.04, and by 0.01 % where transfers share no links. Around degraded links all members
//     of a class are slowed by what slows one: up to 2.7 % with little sharing, 4 % at 0.37.
//   - Of finer classes the distance to the coarser ones says how much these ignored. Without sharing
//     the next distance is at most half of it. With sharing it need not become less at all.
constexpr double kOfSharing = 0.1, kOfLinks = 0.03;
constexpr double kOfRefined = 0.5, kOfRefinedSharing = 1, kOfSharingRefined = 0.045;
constexpr double kLeastBound = 0.003;

struct Run {
  const configs::Config& config;
  const isa::PodProgram& program;
  const SimulationOptions& options;
};

struct Limits {
  int64_t instructions = kDefaultMaxEvents;
  int64_t flows = std::numeric_limits<int64_t>::max();

  bool Allow(double events) const {
    return events <= static_cast<double>(std::min(instructions, flows));
  }
};

// Returns limits for as many events in all as exact_under.
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
  limits.instructions = std::max<int64_t>(0, limits.instructions - pod.instructions());
  limits.flows = std::max<int64_t>(0, limits.flows - pod.flows());
  RETURN_IF_ERROR(pod.fault());
  if (flights != nullptr && flights->refused()) return std::nullopt;
  if (pod.passes_ahead() || sc_core::sc_pending_activity() || pod.network().active_flows() > 0) {
    return TooLong(pod.passes_ahead(), pod.network(), config, program);
  }
  RETURN_IF_ERROR(CheckFinished(pod, program));

  Timeline timeline = recorder.Finish();
  timeline.events = pod.events();
  timeline.folding.error_bound = pod.tolerated();
  timeline.critical_path = causes.CriticalPath();
  Picoseconds path(0);
  for (const events::Causes::PathPart& part : timeline.critical_path) path += part.time;
  TPUSIM_CHECK(timeline.critical_path.empty() || path == timeline.step_time,
               fmt::format("the critical path takes {} of the {} ps of the step", path.value(),
                           timeline.step_time.value()));
  pod.AddBytes(timeline);
  pod.CheckInvariants(timeline);
  timeline.chip_classes = classes.chips.classes();
  timeline.folding.device_classes = classes.devices.classes();
  timeline.folding.link_sharing = pod.network().statistics().Sharing();
  return timeline;
}

// Whether so many classes of devices are to be simulated.
using MaySimulate = std::function<bool(int64_t classes)>;

// Refines the classes until they allow what is in flight together. RESOURCE_EXHAUSTED beyond
// `limits`, or if `may` says so of the classes. `before`: simulations of coarser classes.
absl::StatusOr<Timeline> SimulateExact(const Run& run, Limits& limits, const MaySimulate& may,
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
  Limits all{run.options.max_events};
  return SimulateExact(run, all, always, symmetry, before);
}

// The error of coarser classes, level by level.
class Approximation {
 public:
  Approximation(const Run& run, const Symmetry& exact)
      : run_(run), exact_(exact), levels_(run.config, run.program, run.options.impairments) {}

  // Returns how many classes of devices the coarsest level has.
  int64_t LeastClasses() { return levels_.DeviceClasses(kDevices); }
  // Simulates the coarsest level. RESOURCE_EXHAUSTED as ever; other errors of coarser classes need
  // not be those of the exact ones.
  absl::Status Begin();
  // Simulates the classes of groups, if they are predicted to stay within `limits`.
  void AddGroups(Limits& limits);
  // Simulates the finest level that is predicted to stay within `limits`, if groups were.
  void Refine(Limits& limits);
  // From what has been simulated, what so many classes execute.
  double Predicted(int64_t classes) const {
    return kFinerFactor * static_cast<double>(classes) * static_cast<double>(last_->events) /
           static_cast<double>(last_->folding.device_classes);
  }
  int64_t simulations() const { return simulations_; }
  // The step of the finest level, with what is known of its error.
  Timeline Take() &&;

 private:
  // Returns how far the step may be from the exact one, as a part of it.
  double Bound() const;
  // Returns what distinguishes the classes.
  std::string Means() const;
  // Simulates a finer level. Beyond `limits`, or at a circle of waits, what there is stands.
  void Add(int level, Limits& limits);
  absl::StatusOr<Timeline> Simulate(int level, Limits& limits);

  const Run& run_;
  const Symmetry& exact_;
  Levels levels_;
  int64_t simulations_ = 0;
  std::optional<Picoseconds> coarser_;  // the step of the level simulated before the last
  std::optional<Timeline> last_;
  int level_ = -1;  // of last_
};

absl::StatusOr<Timeline> Approximation::Simulate(int level, Limits& limits) {
  ++simulations_;
  ASSIGN_OR_RETURN(std::optional<Timeline> timeline,
                   SimulateClasses(run_, levels_.ClassesAt(level), limits, /*flights=*/nullptr));
  return *std::move(timeline);
}

absl::Status Approximation::Begin() {
  Limits all{run_.options.max_events};
  level_ = levels_.DeviceClasses(kDevices) < levels_.DeviceClasses(kGroups) ? kDevices : kGroups;
  ASSIGN_OR_RETURN(last_, Simulate(level_, all));
  return absl::OkStatus();
}

void Approximation::Add(int level, Limits& limits) {
  absl::StatusOr<Timeline> finer = Simulate(level, limits);
  if (!finer.ok()) {
    limits = {0, 0};
    return;
  }
  coarser_ = last_->step_time;
  last_ = *std::move(finer);
  level_ = level;
}

void Approximation::AddGroups(Limits& limits) {
  if (level_ == kDevices && limits.Allow(Predicted(levels_.DeviceClasses(kGroups)))) {
    Add(kGroups, limits);
  }
}

void Approximation::Refine(Limits& limits) {
  if (level_ < kGroups) return;
  int finest = level_;
  for (int level = level_ + 1;; ++level) {
    const int64_t classes = levels_.DeviceClasses(level);
    if (classes <= levels_.DeviceClasses(level - 1) || !limits.Allow(Predicted(classes))) break;
    finest = level;
  }
  if (finest > level_) Add(finest, limits);
}

double Approximation::Bound() const {
  const double sharing = last_->folding.link_sharing;
  if (!coarser_) {
    const double links = run_.options.impairments.links.empty() ? 0 : kOfLinks;
    return std::max(links, kLeastBound) + kOfSharing * sharing;
  }
  const double distance = Ratio(last_->folding.ignored_skew, last_->step_time);
  return std::max(kOfRefined * distance, kLeastBound) +
         sharing * (kOfRefinedSharing * distance + kOfSharingRefined);
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
  const double bound = Bound() * static_cast<double>(last_->step_time.value());
  folding.error_bound += Picoseconds(static_cast<int64_t>(std::ceil(bound)));
  return *std::move(last_);
}

absl::StatusOr<Timeline> SimulateApproximately(const Run& run) {
  Symmetry exact(run.config, run.program, run.options.impairments, /*folds=*/true,
                 run.options.record_devices);
  Approximation approximation(run, exact);
  if (approximation.LeastClasses() >= ClassesOf(exact)) return SimulateExact(run, exact);
  const absl::Status begun = approximation.Begin();
  // Devices that are put together may wait for each other.
  if (!begun.ok() && !absl::IsResourceExhausted(begun)) {
    return SimulateExact(run, exact, approximation.simulations());
  }
  RETURN_IF_ERROR(begun);
  Limits all{run.options.max_events};
  approximation.AddGroups(all);
  return std::move(approximation).Take();
}

absl::StatusOr<Timeline> SimulateAutomatically(const Run& run) {
  const SimulationOptions& options = run.options;
  const auto most = static_cast<double>(options.exact_under);
  Symmetry exact(run.config, run.program, options.impairments, /*folds=*/true,
                 options.record_devices);
  exact.TryOrbits();
  const double least = isa::CountInstructions(run.program, kLeastPasses).instructions;
  Approximation approximation(run, exact);
  const int64_t coarsest = approximation.LeastClasses();
  // What few classes take, or as few as coarser ones are, is no more than what those would.
  const auto are_few = [&](int64_t classes) {
    return classes <= std::max(kUnpredictedClasses, coarsest);
  };
  const auto are_small = [&](int64_t classes) {
    return are_few(classes) ||
           least * static_cast<double>(classes) * kEventsPerInstruction <= most;
  };
  Limits budget = Budget(options);
  if (are_small(ClassesOf(exact))) {
    // What seems small and is not leaves half of the budget for what follows.
    budget = {budget.instructions / 2, budget.flows / 2};
    Limits limits = are_few(ClassesOf(exact)) ? Limits{options.max_events} : budget;
    absl::StatusOr<Timeline> timeline = SimulateExact(run, limits, are_small, exact);
    if (!absl::IsResourceExhausted(timeline.status()) || are_few(ClassesOf(exact))) return timeline;
  }
  const absl::Status begun = approximation.Begin();
  if (absl::IsResourceExhausted(begun)) return begun;
  // Devices that are put together may wait for each other.
  if (!begun.ok()) return SimulateExact(run, exact, approximation.simulations());
  approximation.AddGroups(budget);
  const auto are_cheap = [&](int64_t classes) {
    return budget.Allow(approximation.Predicted(classes));
  };
  if (are_cheap(ClassesOf(exact))) {
    absl::StatusOr<Timeline> timeline =
        SimulateExact(run, budget, are_cheap, exact, approximation.simulations());
    if (!absl::IsResourceExhausted(timeline.status())) return timeline;
  }
  approximation.Refine(budget);
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
