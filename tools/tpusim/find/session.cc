#include "tools/tpusim/find/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "configs/config_digest.h"
#include "configs/digest.h"
#include "configs/status_macros.h"
#include "workloads/buffers/fits.h"
#include "workloads/search/program.h"
#include "workloads/search/program_key.h"
#include "workloads/target/target.h"

namespace tpusim::tools {
namespace {

std::string OptionsKey(const ProgramFlags& flags) {
  configs::Digest digest;
  AddTo(digest, flags);
  return digest.Text();
}

// Identifies a program on a machine: the partitioned program, and all that is not in it.
std::string OutcomeKey(const std::string& slice, ProgramFlags flags, const MachineFlags& machine,
                       const std::string& program) {
  flags.mesh = flags.device_order = "";
  flags.arguments = flags.constraints = {};
  flags.verify_passes = true;
  configs::Digest digest;
  digest.Add(slice, program);
  AddTo(digest, flags);
  AddTo(digest, machine);
  return digest.Text();
}

// Equal for slices of one chip with the same settings.
std::string ChipKey(configs::Config slice) {
  slice.name.clear();
  slice.topology = {};
  configs::Digest digest;
  AddTo(digest, slice);
  return digest.Text();
}

Outcome WithoutEffort(Outcome known) {
  known.compiled = known.simulated = false;
  return known;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Of(const std::string& file,
                                                     const ProgramFlags& flags) {
  ASSIGN_OR_RETURN(hlo::ImportedWorkload imported, hlo::ImportFile(file));
  const int64_t partitions = PartitionsOf(imported);
  std::optional<sharding::NormalisedModule> normalised;
  if (!imported.partitioned) {
    ASSIGN_OR_RETURN(normalised, compiler::NormalisedOf(imported, CompileOptionsOf(flags).remat));
  }
  return std::unique_ptr<Session>(
      new Session(file, std::move(imported), partitions, std::move(normalised)));
}

Session::Session(std::string file, hlo::ImportedWorkload imported, int64_t partitions,
                 std::optional<sharding::NormalisedModule> normalised)
    : file_(std::move(file)),
      imported_(std::move(imported)),
      partitions_(partitions),
      normalised_(std::move(normalised)) {}

absl::StatusOr<std::string> Session::SliceOf(const std::string& config) const {
  return config.empty() ? NamedSlice(file_, imported_.workload) : config;
}

Source Session::SourceFor(const ProgramFlags& flags, bool warns) {
  return {.file = file_,
          .import =
              [this] {
                hlo::ImportedWorkload copy = search::CopyOf(imported_);
                if (imported_.module != nullptr) copy.module = imported_.module->Clone();
                return copy;
              },
          .normalised = normalised_ ? &*normalised_ : nullptr,
          .common =
              [this, &flags](const std::string& slice, const configs::Config& config) {
                latest_ = &OnSlice(slice, config, flags);
                latest_->peak.reset();
                return &latest_->common;
              },
          .warns = warns};
}

Session::Slice& Session::OnSlice(const std::string& slice, const configs::Config& config,
                                 const ProgramFlags& flags) {
  Slices& slices = chips_[ChipKey(config)];
  const compiler::Common* kin = slices.empty() ? nullptr : &slices.begin()->second->common;
  std::unique_ptr<Slice>& made =
      slices[fmt::format("{} {}", slice, fmt::join(flags.algorithms, " "))];
  if (made == nullptr) made = std::make_unique<Slice>(config, kin);
  return *made;
}

absl::StatusOr<Prepared> Session::Compiled(const std::string& slice, const ProgramFlags& flags,
                                           const MachineFlags& machine,
                                           compiler::CompileOptions options) {
  options.watch.partitioned = [&](const hlo::Module& module, const std::vector<int64_t>& devices) {
    program_ = OutcomeKey(slice, flags, machine, search::ProgramKey(module, devices));
    return true;
  };
  return Prepare(SourceFor(flags, /*warns=*/true), slice, flags, options);
}

void Session::Know(const results::Report& report) {
  outcomes_[program_] = {
      .peak = report.peak.hbm(), .usable = report.usable.hbm(), .step = report.step_time};
}

const Outcome* Session::KnownPeak(const std::string& slice, const ProgramFlags& flags) {
  absl::StatusOr<configs::Config> config = configs::LoadConfig(slice, flags.overrides);
  if (!config.ok()) return nullptr;
  const auto compiled_for = CompiledFor(slice, flags.overrides, flags, *config);
  if (!compiled_for.ok()) return nullptr;
  const configs::Config& compiled = *compiled_for ? **compiled_for : *config;
  const std::string options = OptionsKey(flags);
  Slice& asked = OnSlice(slice, compiled, flags);
  for (const auto& [name, other] : chips_[ChipKey(compiled)]) {
    if (other->peak && other->options == options && other->common.SameIn(asked.common)) {
      return &*other->peak;
    }
  }
  return nullptr;
}

absl::StatusOr<Outcome> Session::Ask(const std::string& slice, const ProgramFlags& flags,
                                     const MachineFlags* machine) {
  if (machine == nullptr) {
    if (const Outcome* known = KnownPeak(slice, flags)) return WithoutEffort(*known);
  }
  std::string program;
  compiler::CompileOptions options = CompileOptionsOf(flags);
  options.reasons = false;
  if (machine != nullptr) {
    options.watch.partitioned = [&](const hlo::Module& module,
                                    const std::vector<int64_t>& devices) {
      program = OutcomeKey(slice, flags, *machine, search::ProgramKey(module, devices));
      return !outcomes_.contains(program);
    };
  }
  const absl::StatusOr<Prepared> prepared =
      Prepare(SourceFor(flags, /*warns=*/false), slice, flags, options);
  Outcome outcome;
  if (const std::optional<Bytes> needed = buffers::NeededHbm(prepared.status())) {
    ASSIGN_OR_RETURN(const configs::Config config, configs::LoadConfig(slice, flags.overrides));
    outcome = {.peak = *needed,
               .usable = target::Target(config).Usable(hlo::kHbmSpace),
               .too_much = Message(prepared.status())};
  } else {
    RETURN_IF_ERROR(prepared.status());
    if (prepared->compiled.stopped) return WithoutEffort(outcomes_.at(program));
    const isa::ProgramInfo& info = prepared->compiled.program.info;
    outcome = {.peak = info.peak.hbm(), .usable = info.usable.hbm()};
    if (machine != nullptr) {
      ASSIGN_OR_RETURN(const Simulated simulated, Simulate(*prepared, *machine));
      outcome.step = simulated.report.step_time;
      outcome.simulated = true;
      outcomes_[program] = outcome;
    }
  }
  outcome.compiled = true;
  if (machine == nullptr) {
    latest_->peak = outcome;
    latest_->options = OptionsKey(flags);
  }
  return outcome;
}

}  // namespace tpusim::tools
