#include "tools/tpusim/find/judge.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "configs/limit.h"
#include "configs/status_macros.h"
#include "tools/tpusim/output/stopwatch.h"
#include "workloads/buffers/fits.h"
#include "workloads/compiler/stages.h"
#include "workloads/search/compiled_bound.h"
#include "workloads/search/program_key.h"
#include "workloads/target/target.h"

namespace tpusim::tools {
namespace {

using search::Verdict;

// Kernels that a judge keeps, each of a few kilobytes.
constexpr int64_t kMostKernels = 50'000;
// Events of the simulation that is tried first where devices differ.
constexpr int64_t kFewEvents = 100'000;

}  // namespace

std::string Judge::Identity(const compiler::PartitionedProgram& program, const std::string& key) {
  return search::ProgramKey(program.module(), program.result().device_of_partition) + key;
}

void Judge::Know(const std::string& identity, Verdict verdict) {
  verdict.compiled = verdict.simulated = false;
  known_[identity] = std::move(verdict);
}

template <typename Bound>
absl::StatusOr<Picoseconds> Judge::OnMachine(Bound bound, const hlo::Module& module,
                                             cost::ChipCostModel& costs, const Trial& trial) {
  const collectives::AlgorithmOverrides& algorithms = trial.options.algorithms;
  compiler::SliceCache& machine = session_.caches().Of(trial.machine.config, algorithms);
  if (!trial.machine.compiled_for) return bound(module, machine.target(), costs);
  cost::ChipCostModel of_machine = machine.CostsLike(costs, algorithms);
  return bound(module, machine.target(), of_machine);
}

absl::StatusOr<Picoseconds> Judge::BoundOf(const compiler::SimplifiedProgram& program,
                                           const Trial& trial) {
  return OnMachine(search::SimplifiedBound, program.module(), program.costs(), trial);
}

absl::StatusOr<Picoseconds> Judge::BoundOf(const compiler::KernelProgram& program,
                                           const Trial& trial) {
  return OnMachine(search::CompiledBound, program.module(), program.costs(), trial);
}

absl::StatusOr<Verdict> Judge::Of(const Trial& trial) {
  if (session_.caches().KernelSearches() > kMostKernels) {
    session_.caches().Clear();
    peaks_.clear();
  }
  if (trial.simulation == nullptr) {
    if (const Verdict* const known = KnownPeak(trial)) return *known;
  }
  return Compiled(trial);
}

absl::StatusOr<Verdict> Judge::Compiled(const Trial& trial) {
  const configs::Config& slice = trial.machine.ToCompileFor();
  Verdict verdict;
  bool goes_on = true;
  Peak* peak = nullptr;
  const auto stages = [&](compiler::PartitionedProgram partitioned,
                          const Machine& machine) -> absl::StatusOr<compiler::CompileResult> {
    const auto end = [&](auto&& stage) {
      goes_on = false;
      return std::move(stage).Take();
    };
    if (trial.simulation == nullptr) {
      peak = &peaks_[&session_.caches().Of(slice, trial.options.algorithms)];
      *peak = {{}, trial.key, partitioned.result().workload, partitioned.result().mesh};
    } else {
      verdict.program = Identity(partitioned, trial.key);
      const auto [known, is_new] = known_.try_emplace(verdict.program);
      if (!is_new) {
        verdict = known->second;
        verdict.equal = true;
        return end(std::move(partitioned));
      }
    }
    verdict.compiled = true;
    ASSIGN_OR_RETURN(auto simplified, std::move(partitioned).Simplify());
    // In an order of passes that the user states, they might simplify what has layouts.
    if (trial.bounds && trial.options.passes.empty()) {
      const absl::StatusOr<Picoseconds> bound = BoundOf(simplified, trial);
      if (bound.ok()) verdict.bound = *bound;
      if (verdict.bound >= trial.cutoff) return end(std::move(simplified));
    }
    ASSIGN_OR_RETURN(auto kernels, std::move(simplified).BuildKernels());
    if (trial.bounds) {
      RETURN_IF_ERROR(kernels.CheckNothingOpen());
      ASSIGN_OR_RETURN(const Picoseconds bound, BoundOf(kernels, trial));
      verdict.bound = std::max(verdict.bound, bound);
      if (verdict.bound >= trial.cutoff) return end(std::move(kernels));
    }
    ASSIGN_OR_RETURN(auto scheduled, std::move(kernels).Schedule());
    return std::move(scheduled).Lower(machine.ToLowerFor());
  };
  const auto forget = [&] {
    // A search counts what is refused once.
    if (!trial.bounds && !verdict.equal) known_.erase(verdict.program);
    if (peak != nullptr) peaks_.erase(&session_.caches().Of(slice, trial.options.algorithms));
  };
  const Stopwatch compiling;
  const LimitScope outside_of_passes;
  const absl::StatusOr<compiler::CompileResult> compiled =
      tools::Compiled(trial.source, trial.machine, trial.flags, trial.options, session_,
                      compiler::CopyOf(*trial.source.normalised), /*reasons=*/false, stages);
  // A search has too many of them.
  if (compiled.ok() && !trial.bounds) {
    TellCompilation(trial.flags, trial.machine.config.name, compiling.Seconds(), *compiled,
                    outside_of_passes);
  }
  if (const std::optional<Bytes> needed = buffers::NeededHbm(compiled.status())) {
    verdict.kind = Verdict::Kind::kTooLarge;
    verdict.peak = *needed;
    verdict.usable = target::Target(trial.machine.config).Usable(hlo::kHbmSpace);
    verdict.why = Message(compiled.status());
  } else if (!compiled.ok()) {
    forget();
    return compiled.status();
  } else if (verdict.equal) {
    verdict.compiled = verdict.simulated = false;
    return verdict;
  } else if (!goes_on) {
    verdict.kind = Verdict::Kind::kBounded;
  } else {
    const isa::ProgramInfo& info = compiled->program.info;
    verdict.kind = Verdict::Kind::kFits;
    verdict.peak = info.peak.hbm();
    verdict.usable = info.usable.hbm();
    if (trial.simulation != nullptr) {
      const absl::Status simulated = Simulate(trial, compiled->program, verdict);
      if (!simulated.ok()) {
        forget();
        return simulated;
      }
    }
  }
  if (trial.simulation != nullptr) known_[verdict.program] = verdict;
  if (peak != nullptr) peak->verdict = verdict;
  return verdict;
}

absl::Status Judge::Simulate(const Trial& trial, const isa::PodProgram& program,
                             Verdict& verdict) {
  const configs::Config& machine = trial.machine.config;
  const sim::SimulationOptions& options = *trial.simulation;
  absl::StatusOr<sim::Timeline> timeline = absl::UnknownError("");
  if (trial.bounds) {
    sim::SimulationOptions quick = options;
    quick.exact_under = std::min(quick.exact_under, kFewEvents);
    timeline = sim::Simulate(machine, program, quick);
    verdict.kind = Verdict::Kind::kBounded;
    if (timeline.ok() && timeline->folding.is_approximate) {
      // Only what is shorter for sure is worth the longer simulation.
      if (timeline->step_time >= trial.cutoff) {
        verdict.bound =
            std::max(verdict.bound, timeline->step_time - timeline->folding.error_bound);
        return absl::OkStatus();
      }
      timeline = sim::Simulate(machine, program, options);
    }
    // Beyond --max-events nothing is known of it but its bound.
    if (absl::IsResourceExhausted(timeline.status())) return absl::OkStatus();
  } else {
    timeline = sim::Simulate(machine, program, options);
    if (absl::IsResourceExhausted(timeline.status())) {
      return TooManyEvents(program, options.max_events);
    }
  }
  RETURN_IF_ERROR(timeline.status());
  verdict.kind = Verdict::Kind::kSimulated;
  verdict.step = timeline->step_time;
  verdict.simulated = true;
  return absl::OkStatus();
}

const Verdict* Judge::KnownPeak(const Trial& trial) {
  const configs::Config& slice = trial.machine.ToCompileFor();
  compiler::SliceCaches& caches = session_.caches();
  compiler::SliceCache& asked = caches.Of(slice, trial.options.algorithms);
  for (compiler::SliceCache* const other : caches.OfChip(slice)) {
    const auto found = peaks_.find(other);
    if (found == peaks_.end() || found->second.key != trial.key) continue;
    Peak& peak = found->second;
    const auto place = [&](const configs::Config& on) {
      return compiler::PlacePartitions(peak.workload, peak.mesh, peak.workload.num_partitions(), on,
                                       trial.options.device_order);
    };
    const auto here = place(other->config()), there = place(slice);
    if (!here.ok() || !there.ok() ||
        !other->SchedulesAlike(here->device_of_partition, asked, there->device_of_partition)) {
      continue;
    }
    peak.verdict.compiled = false;
    return &peak.verdict;
  }
  return nullptr;
}

std::string ToText(const search::Candidate& candidate, Picoseconds cutoff) {
  std::vector<int> conflicts;
  for (const search::ConflictResolution resolution : candidate.conflicts) {
    conflicts.push_back(static_cast<int>(resolution));
  }
  return nlohmann::json{candidate.variant, candidate.mesh, candidate.axes, conflicts,
                        cutoff.value()}
      .dump();
}

std::pair<search::Candidate, Picoseconds> CandidateOf(const std::string& text) {
  const nlohmann::json j = nlohmann::json::parse(text);
  search::Candidate candidate{
      j[1].get<int32_t>(), j[2].get<std::vector<search::AxisSet>>(), {}, j[0].get<int32_t>()};
  for (const int resolution : j[3].get<std::vector<int>>()) {
    candidate.conflicts.push_back(static_cast<search::ConflictResolution>(resolution));
  }
  return {std::move(candidate), Picoseconds(j[4].get<int64_t>())};
}

std::string ToText(const Verdict& verdict) {
  return nlohmann::json{static_cast<int>(verdict.kind),
                        verdict.bound.value(),
                        verdict.step.value(),
                        verdict.peak.value(),
                        verdict.usable.value(),
                        verdict.equal,
                        verdict.compiled,
                        verdict.simulated,
                        verdict.why,
                        verdict.program}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Verdict VerdictOf(const std::string& text) {
  const nlohmann::json j = nlohmann::json::parse(text);
  Verdict verdict;
  verdict.kind = static_cast<Verdict::Kind>(j[0].get<int>());
  verdict.bound = Picoseconds(j[1].get<int64_t>());
  verdict.step = Picoseconds(j[2].get<int64_t>());
  verdict.peak = Bytes(j[3].get<int64_t>());
  verdict.usable = Bytes(j[4].get<int64_t>());
  verdict.equal = j[5].get<bool>();
  verdict.compiled = j[6].get<bool>();
  verdict.simulated = j[7].get<bool>();
  verdict.why = j[8].get<std::string>();
  verdict.program = j[9].get<std::string>();
  return verdict;
}

}  // namespace tpusim::tools
