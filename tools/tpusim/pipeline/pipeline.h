// From a workload file to a report: the stages that all subcommands share.
//
//   Prepare    reads the file, picks the configuration, compiles
//   Simulate   runs the compiled program and builds the report
//
// Several simulations run beside each other by InChildren (find/pool.h).
//
// The room answers how a file and options become a simulated step; `Prepare` is its entry point.
#ifndef TPUSIM_TOOLS_TPUSIM_PIPELINE_PIPELINE_H_
#define TPUSIM_TOOLS_TPUSIM_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "configs/limit.h"
#include "sim/results/report/report.h"
#include "sim/simulate.h"
#include "sim/timeline.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "workloads/compiler/session.h"
#include "workloads/hlo/io/import.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/sharding/normalised/normalise.h"

namespace tpusim::tools {

// On stderr.
void PrintPassRuns(const std::vector<passes::PassRun>& runs);
// [{"pass", "changed", "instructions" added, "milliseconds"}]
nlohmann::ordered_json PassRunsJson(const std::vector<passes::PassRun>& runs);

// "folder/step.pb.gz" -> "step", "-" -> "stdin"
std::string NameOf(const std::string& file);

struct Prepared {
  std::string name;        // as the exporter called the program, else NameOf(file)
  configs::Config config;  // of the machine
  compiler::CompileResult compiled;
};

// The slice that runs a program, and the one that the program is compiled for.
struct Machine {
  std::string slice;           // as --config has it
  std::string programs_flags;  // of the TPU compiler, as the workload has them
  configs::Config config;      // with all that --set says
  // Without speeds that --set changes, where it changes any and not --recompile: the compiler does
  // not know of the question what else would make the program faster.
  std::optional<configs::Config> compiled_for;

  const configs::Config& ToCompileFor() const { return compiled_for ? *compiled_for : config; }
  // Returns what a program is lowered for; null: the slice that it is compiled for.
  const configs::Config* ToLowerFor() const { return compiled_for ? &config : nullptr; }
};
// The TPU compiler that a workload is for, as far as the workload says.
struct ProgramsCompiler {
  std::string xla_flags;
  std::string libtpu;  // that compiled it ("0.0.42.1"); "": it is not compiled
  bool operator==(const ProgramsCompiler&) const = default;
};
ProgramsCompiler CompilerOfProgram(const tpusim::Workload& workload);
// Returns the compiler whose policy holds: that of --compiler, else the one of the program.
std::string CompilerFor(const ProgramFlags& flags, const ProgramsCompiler& program);
// Flags of the TPU compiler that a workload has, in warnings and errors.
inline constexpr char kProgramsFlags[] = "flags of the program";
// Flags of the program count where --xla-flags do not say otherwise. Errors: no such slice or
// compiler; a parameter or a flag of the TPU compiler that there is not.
absl::StatusOr<Machine> MachineOf(const std::string& slice, const ProgramFlags& flags,
                                  const ProgramsCompiler& program = {});

// Returns the slice that a workload names. Error: none; `file` is for the message.
absl::StatusOr<std::string> NamedSlice(const std::string& file, const tpusim::Workload& workload);

// The file that a program comes from, and how it is read.
struct Source {
  std::string file;
  std::function<absl::StatusOr<hlo::ImportedWorkload>()> import;  // for each compilation
  // The program as it is normalised, which is copied instead; null: it is imported and normalised.
  const compiler::NormalisedProgram* normalised = nullptr;
};

// Returns a source that can be imported repeatedly, stdin ("-") too.
absl::StatusOr<Source> SourceOf(const std::string& file);

// A program that was read, and the machine that is to run it.
struct Opened {
  std::string name;  // as the exporter called the program, else NameOf(file)
  Machine machine;
  hlo::ImportedWorkload imported;  // empty where the source is normalised
};
// `config` "" = the slice that the workload names. Errors: of the import and of MachineOf; no
// slice.
absl::StatusOr<Opened> Open(const Source& source, const std::string& config,
                            const ProgramFlags& flags);

// Runs the stages after partitioning, up to the one that a command needs.
using RunStages = std::function<absl::StatusOr<compiler::CompileResult>(
    compiler::PartitionedProgram partitioned, const Machine& machine)>;
// Returns a function that runs the stages up to `last`.
RunStages Until(compiler::Stage last);

// Compiles for a machine in `session`. A pass that breaks an invariant leaves the module behind
// (broken_pass.h). `reasons`: whether it is asked why values are sharded as they are.
absl::StatusOr<compiler::CompileResult> Compiled(const Source& source, const Machine& machine,
                                                 const ProgramFlags& flags,
                                                 const compiler::CompileOptions& options,
                                                 compiler::Session& session,
                                                 compiler::NormalisedProgram program, bool reasons,
                                                 const RunStages& stages);

// Prints the limits of effort that the scope counted, behind `limits`, as remarks on stderr.
void PrintLimits(const LimitScope& scope, std::vector<Record> limits = {});

// Says on stderr what --verbose and --pass-timings ask of a compilation that took so long; `outside`
// has the limits that were reached outside of passes.
void TellCompilation(const ProgramFlags& flags, const std::string& slice, double seconds,
                     const compiler::CompileResult& compiled, const LimitScope& outside);

// Compiles the program of a file down to streams. `config` "" = the slice that the workload names.
// What had to be assumed is added to the program's assumptions, overrides that this program does
// not use to its warnings.
absl::StatusOr<Prepared> Prepare(const std::string& file, const std::string& config,
                                 const ProgramFlags& flags,
                                 const compiler::CompileOptions& options);
absl::StatusOr<Prepared> Prepare(const Source& source, const std::string& config,
                                 const ProgramFlags& flags,
                                 const compiler::CompileOptions& options);
// Compiles the program of a source in a session, by the given stages; only for streams are options
// without effect looked for.
absl::StatusOr<Prepared> Prepare(const Source& source, const std::string& config,
                                 const ProgramFlags& flags,
                                 const compiler::CompileOptions& options,
                                 compiler::Session& session, const RunStages& stages);

// Warnings of a compiled program, wherever the compiler stopped.
std::vector<std::string> WarningsOf(const Prepared& prepared);

// Returns a warning of a program that may take more than the limit of
// events; "" if there is nothing.
std::string ExpectedEventsWarning(const Prepared& prepared, const MachineFlags& flags);

// Error: what a simulation of the program that is given up after so many instructions comes to.
absl::Status TooManyEvents(const isa::PodProgram& program, int64_t max_events);

struct Simulated {
  sim::Timeline timeline;
  results::Report report;
  double seconds = 0;
};
// Details of the simulation that are kept beside totals (sim::SimulationOptions).
struct Recorded {
  std::vector<int32_t> devices;
  int64_t steps = 0;
  bool work = true;
};
absl::StatusOr<sim::SimulationOptions> SimulationOptionsOf(const configs::Config& machine,
                                                           const MachineFlags& flags);
absl::StatusOr<Simulated> Simulate(const Prepared& prepared, const MachineFlags& flags,
                                   const Recorded& recorded = {});

// Both, for a child: the report as the text that results::FromJson reads.
absl::StatusOr<std::string> SimulateToText(
    const std::string& workload, const std::string& config, const ProgramFlags& program,
    const MachineFlags& machine, results::JsonDetail detail = results::JsonDetail::kExchange);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_PIPELINE_PIPELINE_H_
