// From a workload file to a report: the stages that all subcommands share.
//
//   Prepare    reads the file, picks the configuration, compiles
//   Simulate   runs the compiled program and builds the report
//
// Several simulations run beside each other by InChildren (find/pool.h).
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
#include "sim/results/report/report.h"
#include "sim/simulate.h"
#include "sim/timeline.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "workloads/compiler/compile.h"
#include "workloads/hlo/io/import.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/sharding/normalise.h"

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
  double import_seconds = 0, compile_seconds = 0;  // wall clock, for --verbose
};

// How many partitions a program is for.
int64_t PartitionsOf(const hlo::ImportedWorkload& imported);

// The slice that a workload names. Error: none; `file` is for the message.
absl::StatusOr<std::string> NamedSlice(const std::string& file, const tpusim::Workload& workload);

// The slice of a run: the one given, or that which the workload names. Error: none is.
absl::StatusOr<std::string> SliceOf(const std::string& file, const std::string& config);

// What the program is compiled for where that is not the machine that runs it, `config`, which
// `overrides` made: its compiler does not know of the question what else would make it faster.
// --xla-flags are set in both.
absl::StatusOr<std::optional<configs::Config>> CompiledFor(
    const std::string& slice, const std::vector<std::string>& overrides, const ProgramFlags& flags,
    configs::Config& config);

// Where a program comes from, and what its compilations have in common.
struct Source {
  std::string file;
  std::function<absl::StatusOr<hlo::ImportedWorkload>()> import;  // for each compilation
  // Null: nothing. The module of `import` is not read where this is there.
  const sharding::NormalisedModule* normalised = nullptr;
  // Returns what compilations for a slice share; null: they share nothing.
  std::function<compiler::Common*(const std::string& slice, const configs::Config& config)> common =
      nullptr;
  // Whether anyone reads which options have no effect.
  bool warns = true;
};

// A file can be imported repeatedly so, stdin ("-") too.
absl::StatusOr<Source> SourceOf(const std::string& file);

// `config` "" = the slice that the workload names.
// What had to be assumed is added to the program's assumptions, overrides that
// this program does not use to its warnings.
absl::StatusOr<Prepared> Prepare(const std::string& file, const std::string& config,
                                 const ProgramFlags& flags,
                                 const compiler::CompileOptions& options);
absl::StatusOr<Prepared> Prepare(const Source& source, const std::string& config,
                                 const ProgramFlags& flags, compiler::CompileOptions options);

// Warnings of a compiled program, wherever the compiler stopped.
std::vector<std::string> WarningsOf(const Prepared& prepared);

// What there is to say before a program runs that may take more than the limit of
// events; "" if there is nothing.
std::string ExpectedEventsWarning(const Prepared& prepared, const MachineFlags& flags);

struct Simulated {
  sim::Timeline timeline;
  results::Report report;
  double seconds = 0;
};
// What of the simulation is kept beside totals: see sim::SimulationOptions.
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
