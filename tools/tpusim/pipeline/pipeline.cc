#include "tools/tpusim/pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "configs/chip_schema.h"
#include "configs/compiler_files.h"
#include "configs/limit.h"
#include "configs/status_macros.h"
#include "configs/xla_flags.h"
#include "models/isa/instruction_count.h"
#include "sim/results/report/build_report.h"
#include "sim/simulate.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/output/stopwatch.h"
#include "tools/tpusim/pipeline/broken_pass.h"
#include "tools/tpusim/pipeline/unused_overrides.h"
#include "workloads/hlo/io/import.h"
#include "workloads/passes/pipeline/pipeline.h"

namespace tpusim::tools {
namespace {

constexpr Reason kUnusedOption{"option.no-effect", Action::kWarned, "{sentence}"};

}  // namespace

std::string NameOf(const std::string& file) {
  if (file == "-") return "stdin";
  std::string name = std::filesystem::path(file).filename().string();
  for (const std::string_view ending : {".gz", ".pb"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) {
      name.resize(name.size() - ending.size());
    }
  }
  return name;
}

void PrintPassRuns(const std::vector<passes::PassRun>& runs) {
  std::istringstream table(passes::ToString(runs));
  for (std::string line; std::getline(table, line);) PrintNote(line);
}

nlohmann::ordered_json PassRunsJson(const std::vector<passes::PassRun>& runs) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const passes::PassRun& run : runs) {
    all.push_back({{"pass", run.pass},
                   {"changed", run.changed},
                   {"instructions", run.after - run.before},
                   {"milliseconds", run.seconds * 1e3}});
  }
  return all;
}

namespace {

// Returns a warning for each algorithm of collectives that the program does not have.
std::vector<std::string> UnusedAlgorithms(const collectives::AlgorithmOverrides& algorithms,
                                          const isa::ProgramInfo& info) {
  std::vector<std::string> warnings;
  for (const collectives::AlgorithmOverride& a : algorithms) {
    const bool used = std::any_of(
        info.collectives.begin(), info.collectives.end(), [&](const isa::CollectiveInfo& c) {
          return a.kind.empty() ? c.kind != "collective-permute" : c.kind == a.kind;
        });
    if (used) continue;
    warnings.push_back(fmt::format("--algorithm {}{}{} has no effect: the program has no {}",
                                   a.kind, a.kind.empty() ? "" : "=", a.name,
                                   a.kind.empty() ? "collective with a choice" : a.kind));
  }
  return warnings;
}

// ", most of them in while.3 with 1000 passes"
std::string LongestLoop(const isa::InstructionCount& count) {
  if (count.loop.empty()) return "";
  return fmt::format(", most of them in the {} passes of {}", count.passes, count.loop);
}

}  // namespace

absl::StatusOr<std::string> NamedSlice(const std::string& file, const tpusim::Workload& workload) {
  if (!workload.config().empty()) return workload.config();
  return UserError(fmt::format(
      "{} names no slice: give one with --config, such as --config v5e-4x2 (`tpusim configs` "
      "lists all)",
      file));
}

namespace {

// The flags, for the chip that the program is compiled for and for the one that runs it.
absl::Status SetXlaFlags(const std::string& flags, std::string_view origin, Machine& machine) {
  ASSIGN_OR_RETURN(const std::vector<std::string> warnings,
                   configs::ApplyXlaFlags(flags, machine.config.chip, origin));
  if (machine.compiled_for.has_value()) {
    RETURN_IF_ERROR(configs::ApplyXlaFlags(flags, machine.compiled_for->chip, origin).status());
  }
  std::vector<std::string>& all = machine.config.warnings;
  all.insert(all.end(), warnings.begin(), warnings.end());
  return absl::OkStatus();
}

}  // namespace

ProgramsCompiler CompilerOfProgram(const tpusim::Workload& workload) {
  return {workload.xla_flags(), workload.compilation().libtpu_version()};
}

std::string CompilerFor(const ProgramFlags& flags, const ProgramsCompiler& program) {
  return flags.compiler.empty() ? configs::CompilerOf(program.libtpu) : flags.compiler;
}

absl::StatusOr<Machine> MachineOf(const std::string& slice, const ProgramFlags& flags,
                                  const ProgramsCompiler& program) {
  Machine machine;
  machine.slice = slice;
  machine.programs_flags = program.xla_flags;
  const std::string compiler = CompilerFor(flags, program);
  ASSIGN_OR_RETURN(machine.config, configs::LoadConfig(slice, flags.overrides, compiler));
  const std::vector<std::string> others = configs::WithoutSpeeds(flags.overrides, machine.config);
  const bool changes_speeds = others.size() < flags.overrides.size();
  if (changes_speeds && !flags.recompile) {
    ASSIGN_OR_RETURN(machine.compiled_for, configs::LoadConfig(slice, others, compiler));
  }
  if (flags.recompile && !changes_speeds) {
    machine.config.warnings.push_back("--recompile has no effect: --set changes no speed");
  }
  RETURN_IF_ERROR(SetXlaFlags(program.xla_flags, kProgramsFlags, machine));
  RETURN_IF_ERROR(SetXlaFlags(flags.xla_flags, configs::kXlaFlagsOption, machine));
  return machine;
}

RunStages Until(compiler::Stage last) {
  return [last](compiler::PartitionedProgram partitioned, const Machine& machine) {
    return compiler::Finish(std::move(partitioned), last, machine.ToLowerFor());
  };
}

namespace {

absl::StatusOr<compiler::NormalisedProgram> ProgramOf(const Source& source,
                                                      const compiler::CompileOptions& options) {
  if (source.normalised != nullptr) return compiler::CopyOf(*source.normalised);
  ASSIGN_OR_RETURN(hlo::ImportedWorkload imported, source.import());
  return compiler::Normalise(std::move(imported), options.remat);
}

// Returns a sentence per value of the compiler that leaves this program as it is: it is compiled
// without.
absl::StatusOr<std::vector<std::string>> UnusedPolicies(const Source& source,
                                                        const Machine& machine,
                                                        const ProgramFlags& flags,
                                                        const compiler::CompileOptions& options,
                                                        const isa::PodProgram& program) {
  std::vector<std::string> warnings;
  std::string made;
  for (size_t n = 0; n < flags.overrides.size(); ++n) {
    const std::string& text = flags.overrides[n];
    if (!text.starts_with(configs::kPolicyPrefix)) continue;
    ProgramFlags others = flags;
    others.overrides.erase(others.overrides.begin() + static_cast<std::ptrdiff_t>(n));
    others.compiler = machine.config.chip.compiler.compiler;
    ASSIGN_OR_RETURN(const Machine without,
                     MachineOf(machine.slice, others, {machine.programs_flags, ""}));
    ASSIGN_OR_RETURN(compiler::NormalisedProgram again, ProgramOf(source, options));
    compiler::Session session;
    absl::StatusOr<compiler::PartitionedProgram> partitioned =
        session.Partition(std::move(again), options, without.ToCompileFor());
    if (!partitioned.ok()) continue;
    const absl::StatusOr<compiler::CompileResult> compiled = compiler::Finish(
        *std::move(partitioned), compiler::Stage::kStreams, without.ToLowerFor());
    if (made.empty()) made = isa::Disassemble(program);
    if (!compiled.ok() || isa::Disassemble(compiled->program) != made) continue;
    warnings.push_back(fmt::format("--set {} has no effect: the program is compiled the same",
                                   text.substr(0, text.find('='))));
  }
  return warnings;
}

// Adds warnings of options that this program and this slice make no use of.
absl::Status WarnOfUnused(const Source& source, const Machine& machine, const ProgramFlags& flags,
                          const compiler::CompileOptions& options,
                          compiler::CompileResult& compiled) {
  isa::ProgramInfo& info = compiled.program.info;
  const auto warn = [&](const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences) {
      Records(&info.records).Add(kUnusedOption, "", {{"sentence", sentence}});
    }
  };
  warn(UnusedOverrides(machine.config, compiled.program, *compiled.module));
  if (source.file != "-") {  // what stdin says is said once
    ASSIGN_OR_RETURN(const std::vector<std::string> unused,
                     UnusedPolicies(source, machine, flags, options, compiled.program));
    warn(unused);
  }
  warn(UnusedAlgorithms(options.algorithms, info));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<compiler::CompileResult> Compiled(const Source& source, const Machine& machine,
                                                 const ProgramFlags& flags,
                                                 const compiler::CompileOptions& options,
                                                 compiler::Session& session,
                                                 compiler::NormalisedProgram program, bool reasons,
                                                 const RunStages& stages) {
  const configs::Config& slice = machine.ToCompileFor();
  const auto compile = [&](compiler::NormalisedProgram once, passes::PassWatch& watch,
                           compiler::Session& in, BrokenPass::Compiled* what,
                           const RunStages& run) -> absl::StatusOr<compiler::CompileResult> {
    compiler::CompileOptions watched = options;
    watched.pass_watch = &watch;
    ASSIGN_OR_RETURN(compiler::PartitionedProgram partitioned,
                     in.Partition(std::move(once), watched, slice, reasons));
    if (what != nullptr) {
      what->partitions = partitioned.result().workload.num_partitions();
      what->device_of_partition = partitioned.result().device_of_partition;
    }
    return run(std::move(partitioned), machine);
  };
  const auto replay = [&](passes::PassWatch& watch, BrokenPass::Compiled& what) -> absl::Status {
    ASSIGN_OR_RETURN(compiler::NormalisedProgram again, ProgramOf(source, options));
    compiler::Session once;
    return compile(std::move(again), watch, once, &what, Until(compiler::Stage::kStreams)).status();
  };
  const std::vector<std::string> overrides =
      machine.compiled_for ? configs::WithoutSpeeds(flags.overrides, machine.config)
                           : flags.overrides;
  BrokenPass broken(replay, OptOptionsOf(machine.slice, overrides, flags));
  absl::StatusOr<compiler::CompileResult> compiled =
      compile(std::move(program), broken, session, nullptr, stages);
  if (compiled.ok()) return compiled;
  return broken.Explained(compiled.status());
}

void PrintLimits(const LimitScope& scope, std::vector<Record> limits) {
  scope.AddTo(Records(nullptr, &limits));
  for (const Record& limit : limits) PrintNote("remark: " + ToString(limit));
}

void TellCompilation(const ProgramFlags& flags, const std::string& slice, double seconds,
                     const compiler::CompileResult& compiled, const LimitScope& outside) {
  if (flags.verbose) {
    PrintNote(fmt::format("{}: compiling took {:.1f} ms", slice, seconds * 1e3));
    PrintLimits(outside, passes::LimitsReached(compiled.pass_runs));
  }
  if (flags.pass_timings) PrintPassRuns(compiled.pass_runs);
}

absl::StatusOr<Prepared> Prepare(const std::string& file, const std::string& config,
                                 const ProgramFlags& flags,
                                 const compiler::CompileOptions& options) {
  ASSIGN_OR_RETURN(const Source source, SourceOf(file));
  return Prepare(source, config, flags, options);
}

absl::StatusOr<Prepared> Prepare(const Source& source, const std::string& config,
                                 const ProgramFlags& flags,
                                 const compiler::CompileOptions& options) {
  compiler::Session session;
  return Prepare(source, config, flags, options, session, Until(compiler::Stage::kStreams));
}

absl::StatusOr<Source> SourceOf(const std::string& file) {
  if (file != "-") return Source{.file = file, .import = [file] { return hlo::ImportFile(file); }};
  ASSIGN_OR_RETURN(std::string bytes, ReadText(file));
  return Source{.file = file, .import = [bytes = std::move(bytes)] {
                  return hlo::Import(bytes, "stdin");
                }};
}

absl::StatusOr<Opened> Open(const Source& source, const std::string& config,
                            const ProgramFlags& flags) {
  Opened opened;
  // A misspelt slice is said before a large file is read.
  if (!config.empty()) {
    ASSIGN_OR_RETURN(opened.machine, MachineOf(config, flags));
  }
  const Stopwatch importing;
  if (source.normalised == nullptr) {
    ASSIGN_OR_RETURN(opened.imported, source.import());
  }
  const double import_seconds = importing.Seconds();
  const hlo::ImportedWorkload& read =
      source.normalised != nullptr ? source.normalised->imported : opened.imported;
  const std::string& named = read.workload.name();
  opened.name = named.empty() ? NameOf(source.file) : named;
  if (flags.verbose) {
    PrintNote(fmt::format("{}: {}, import took {:.1f} ms", source.file, read.container,
                          import_seconds * 1e3));
  }
  std::string slice = config;
  if (config.empty()) {
    ASSIGN_OR_RETURN(slice, NamedSlice(source.file, read.workload));
    const absl::Status loaded = configs::LoadConfig(slice, flags.overrides).status();
    if (!loaded.ok()) {
      return absl::Status(loaded.code(),
                          fmt::format("{} (the slice comes from {}; --config overrides it)",
                                      Message(loaded), source.file));
    }
  }
  const ProgramsCompiler said = CompilerOfProgram(read.workload);
  if (config.empty() || said != ProgramsCompiler()) {
    ASSIGN_OR_RETURN(opened.machine, MachineOf(slice, flags, said));
  }
  return opened;
}

absl::StatusOr<Prepared> Prepare(const Source& source, const std::string& config,
                                 const ProgramFlags& flags,
                                 const compiler::CompileOptions& options,
                                 compiler::Session& session, const RunStages& stages) {
  ASSIGN_OR_RETURN(Opened opened, Open(source, config, flags));
  const Machine& machine = opened.machine;
  Prepared prepared;
  prepared.name = opened.name;
  prepared.config = machine.config;
  const Stopwatch compiling;
  const LimitScope outside_of_passes;
  absl::StatusOr<compiler::NormalisedProgram> program =
      source.normalised != nullptr ? compiler::CopyOf(*source.normalised)
                                   : compiler::Normalise(std::move(opened.imported), options.remat);
  RETURN_IF_ERROR(program.status());
  ASSIGN_OR_RETURN(prepared.compiled,
                   Compiled(source, machine, flags, options, session, *std::move(program),
                            /*reasons=*/true, stages));
  TellCompilation(flags, prepared.config.name, compiling.Seconds(), prepared.compiled,
                  outside_of_passes);
  if (prepared.compiled.program.devices() == 0) return prepared;  // it was not lowered

  RETURN_IF_ERROR(WarnOfUnused(source, machine, flags, options, prepared.compiled));
  // The simulation and its trace take the memory.
  prepared.compiled.module.reset();
  return prepared;
}

std::vector<std::string> WarningsOf(const Prepared& prepared) {
  std::vector<std::string> warnings = prepared.config.warnings;
  const auto add = [&warnings](const std::vector<std::string>& more) {
    for (const std::string& warning : more) {
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
        warnings.push_back(warning);
      }
    }
  };
  add(TextsOf(prepared.compiled.records, Action::kWarned));
  add(TextsOf(prepared.compiled.program.info.records, Action::kWarned));
  return warnings;
}

std::string ExpectedEventsWarning(const Prepared& prepared, const MachineFlags& flags) {
  const isa::InstructionCount count = isa::CountInstructions(prepared.compiled.program);
  if (count.instructions <= static_cast<double>(flags.max_events)) return "";
  return fmt::format(
      "one device alone executes about {:.2g} instructions{}; unless a steady state is found, the "
      "simulation will stop after {} (--max-events)",
      count.instructions, LongestLoop(count), flags.max_events);
}

namespace {

sim::Folding FoldingOf(const std::string& text) {
  if (text == "off") return sim::Folding::kOff;
  if (text == "on") return sim::Folding::kExact;
  return text == "approximate" ? sim::Folding::kApproximate : sim::Folding::kAutomatic;
}

}  // namespace

absl::StatusOr<sim::SimulationOptions> SimulationOptionsOf(const configs::Config& machine,
                                                           const MachineFlags& flags) {
  sim::SimulationOptions options;
  options.folding = FoldingOf(flags.fold);
  options.every_step = flags.detail == "tile";
  for (const std::string& text : flags.slow) {
    ASSIGN_OR_RETURN(const sim::SlowChip slow, sim::ParseSlowChip(text, machine));
    options.impairments.chips.push_back(slow);
  }
  for (const std::string& text : flags.links) {
    ASSIGN_OR_RETURN(const sim::DegradedLink link, sim::ParseDegradedLink(text, machine));
    options.impairments.links.push_back(link);
  }
  RETURN_IF_ERROR(sim::CheckNamedOnce(options.impairments));
  options.max_events = flags.max_events;
  options.exact_under = flags.exact_under;
  return options;
}

absl::Status TooManyEvents(const isa::PodProgram& program, int64_t max_events) {
  const isa::InstructionCount count = isa::CountInstructions(program);
  return UserError(fmt::format(
      "stopped after {} instructions, the limit of --max-events; one device alone executes about "
      "{:.2g}{}; raise --max-events, or give the program fewer passes (--trip-count)",
      max_events, count.instructions, LongestLoop(count)));
}

absl::StatusOr<Simulated> Simulate(const Prepared& prepared, const MachineFlags& flags,
                                   const Recorded& recorded) {
  const Stopwatch simulating;
  ASSIGN_OR_RETURN(sim::SimulationOptions options, SimulationOptionsOf(prepared.config, flags));
  options.record_devices = recorded.devices;
  options.record_steps = recorded.steps;
  options.record_work = recorded.work;
  Simulated simulated;
  absl::StatusOr<sim::Timeline> timeline =
      sim::Simulate(prepared.config, prepared.compiled.program, options);
  if (absl::IsResourceExhausted(timeline.status())) {
    return TooManyEvents(prepared.compiled.program, flags.max_events);
  }
  if (!timeline.ok()) return timeline.status();
  simulated.timeline = *std::move(timeline);
  simulated.seconds = simulating.Seconds();
  ASSIGN_OR_RETURN(simulated.report,
                   results::BuildReport(prepared.config, prepared.compiled.program.info,
                                        simulated.timeline, prepared.name));
  simulated.report.producer = ThisProducer();
  for (std::string& sentence : sim::WithoutEffect(prepared.compiled.program, options.impairments)) {
    simulated.report.warnings.push_back(std::move(sentence));
  }
  return simulated;
}

absl::StatusOr<std::string> SimulateToText(const std::string& workload, const std::string& config,
                                           const ProgramFlags& program, const MachineFlags& machine,
                                           results::JsonDetail detail) {
  compiler::CompileOptions options = CompileOptionsOf(program);
  options.op_places = detail == results::JsonDetail::kPlaced;
  ASSIGN_OR_RETURN(const Prepared prepared, Prepare(workload, config, program, options));
  ASSIGN_OR_RETURN(Simulated simulated, Simulate(prepared, machine));
  if (options.op_places) {
    const compiler::CompileResult& compiled = prepared.compiled;
    simulated.report.placed = results::PlaceOps(compiled.program.info, simulated.timeline,
                                                compiled.op_places, compiled.by_tpu_compiler);
  }
  return results::ToJson(simulated.report, detail);
}

}  // namespace tpusim::tools
