#include "tools/tpusim/shard/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/buffers/fits.h"
#include "workloads/search/compiled_bound.h"
#include "workloads/search/program_key.h"
#include "workloads/search/statements.h"

namespace tpusim::tools {
namespace {

using search::Verdict;

// Kernels that a judge keeps, each of a few kilobytes.
constexpr int64_t kMostKernels = 50'000;
// Of the simulation that is tried first where devices differ.
constexpr int64_t kFewEvents = 100'000;

}  // namespace

Judge::Judge(const search::Program& program, const configs::Config& machine,
             const configs::Config* compiled_for, const compiler::CompileOptions& options,
             const sim::SimulationOptions& simulation)
    : program_(program),
      machine_(machine),
      compiled_for_(compiled_for),
      options_(options),
      simulation_(simulation),
      common_(compiled_for != nullptr ? *compiled_for : machine),
      costs_(compiled_for != nullptr ? std::make_unique<compiler::Common>(machine) : nullptr) {}

// Speeds of the machine count, not those that the compiler knows of.
absl::StatusOr<Picoseconds> Judge::OnMachine(Bound bound, const hlo::Module& module,
                                             cost::ChipCostModel& costs) {
  if (costs_ == nullptr) return bound(module, common_.target(), costs);
  cost::ChipCostModel of_machine(
      costs_->target(),
      costs_->Costs(costs.collectives().device_of_partition(), options_.algorithms),
      [&costs](const hlo::Instruction& loop) { return costs.TripsOf(loop); });
  return bound(module, costs_->target(), of_machine);
}

absl::StatusOr<Verdict> Judge::Of(const search::Space& space, const search::Candidate& candidate,
                                  Picoseconds cutoff) {
  search::Statements statements = search::StatementsOf(space, candidate);
  compiler::CompileOptions options = options_;
  options.mesh = std::move(statements.mesh);
  options.arguments = std::move(statements.arguments);
  options.constraints.insert(options.constraints.end(),
                             std::make_move_iterator(statements.constraints.begin()),
                             std::make_move_iterator(statements.constraints.end()));
  return Of(program_.variants[static_cast<size_t>(candidate.variant)], options, cutoff);
}

absl::StatusOr<Verdict> Judge::AsItIs() {
  return Of(program_.variants.front(), options_, Picoseconds(INT64_MAX));
}

absl::StatusOr<Verdict> Judge::Of(const search::Variant& variant, const compiler::CompileOptions& stated,
                                  Picoseconds cutoff) {
  if (common_.kernels()->searches() > kMostKernels) {
    common_.Clear();
    if (costs_ != nullptr) costs_->Clear();
  }
  Verdict verdict;
  absl::Status broken;
  compiler::CompileOptions options = stated;
  options.common = &common_;
  options.normalised = &variant.normalised;
  options.stated.donate = options.stated.donate || variant.donated;
  options.reasons = false;
  options.verify_passes = false;
  options.watch.partitioned = [&](const hlo::Module& module, const std::vector<int64_t>& devices) {
    // What is donated is written down later.
    verdict.program = search::ProgramKey(module, devices) + (variant.donated ? " donated" : "");
    verdict.equal = !seen_.insert(verdict.program).second;
    return !verdict.equal;
  };
  // In another order, the passes might simplify what has layouts.
  if (options.passes.empty()) {
    options.watch.simplified = [&](const hlo::Module& module, cost::ChipCostModel& costs) {
      const absl::StatusOr<Picoseconds> bound = OnMachine(search::SimplifiedBound, module, costs);
      if (bound.ok()) verdict.bound = *bound;
      return verdict.bound < cutoff;
    };
  }
  options.watch.optimized = [&](const hlo::Module& module, cost::ChipCostModel& costs) {
    const absl::StatusOr<Picoseconds> bound = OnMachine(search::CompiledBound, module, costs);
    if (!bound.ok()) {
      broken = bound.status();
      return false;
    }
    verdict.bound = std::max(verdict.bound, *bound);
    return verdict.bound < cutoff;
  };
  const absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(
      search::CopyOf(program_.imported), compiled_for_ != nullptr ? *compiled_for_ : machine_,
      options, compiled_for_ != nullptr ? &machine_ : nullptr);
  if (const std::optional<Bytes> needed = buffers::NeededHbm(compiled.status())) {
    verdict.kind = Verdict::Kind::kTooLarge;
    verdict.peak = *needed;
    return verdict;
  }
  const absl::Status& status = broken.ok() ? compiled.status() : broken;
  if (absl::IsInternal(status)) return status;
  if (!status.ok()) {
    verdict.kind = Verdict::Kind::kImpossible;
    verdict.why = Message(status);
    return verdict;
  }
  verdict.kind = Verdict::Kind::kBounded;
  if (compiled->stopped) return verdict;
  sim::SimulationOptions quick = simulation_;
  quick.exact_under = std::min(quick.exact_under, kFewEvents);
  absl::StatusOr<sim::Timeline> timeline = sim::Simulate(machine_, compiled->program, quick);
  if (timeline.ok() && timeline->folding.is_approximate) {
    // Only what is shorter for sure is worth the longer simulation.
    if (timeline->step_time >= cutoff) {
      verdict.bound = std::max(verdict.bound, timeline->step_time - timeline->folding.error_bound);
      return verdict;
    }
    timeline = sim::Simulate(machine_, compiled->program, simulation_);
  }
  // Beyond --max-events nothing is known of it but its bound.
  if (absl::IsResourceExhausted(timeline.status())) return verdict;
  RETURN_IF_ERROR(timeline.status());
  verdict.kind = Verdict::Kind::kSimulated;
  verdict.step = timeline->step_time;
  verdict.peak = compiled->program.info.peak.hbm();
  return verdict;
}

std::string ToText(const search::Candidate& candidate, Picoseconds cutoff) {
  std::vector<int> conflicts;
  for (const search::ConflictResolution resolution : candidate.conflicts) {
    conflicts.push_back(static_cast<int>(resolution));
  }
  return nlohmann::json{candidate.variant, candidate.mesh, candidate.axes, conflicts, cutoff.value()}
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
                        verdict.equal,
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
  verdict.equal = j[4].get<bool>();
  verdict.why = j[5].get<std::string>();
  verdict.program = j[6].get<std::string>();
  return verdict;
}

}  // namespace tpusim::tools
