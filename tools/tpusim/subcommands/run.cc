// tpusim run: simulates one step and says where the time goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/memory_text.h"
#include "sim/results/report/report.h"
#include "sim/results/report/summary.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/output/progress.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "tools/tpusim/pipeline/trace_flags.h"

namespace tpusim::tools {
namespace {

struct RunFlags {
  std::string workload, config;
  std::string report;
  bool memory = false;
  TraceFlags trace;
  RollupFlags rollup;
  ProgramFlags program;
  MachineFlags machine;
  // The summary would not mix with it.
  bool WritesToStdout() const {
    return report == results::kStdout || trace.trace == results::kStdout ||
           trace.totals == results::kStdout;
  }
};

// Rows of each table of --memory.
constexpr size_t kMemoryRows = 10;
// The width where stdout is no terminal: shapes with their layouts are not cut.
constexpr size_t kMemoryColumns = 220;

// Fills in what --routing costs beside the same program where all experts get equally many rows;
// nothing where it made no difference to any operation.
absl::Status AddRouting(const Source& source, const RunFlags& flags, results::Report& report) {
  const auto routed = std::ranges::find(report.records, "state-ragged-sizes.routed",
                                        &results::RecordReport::reason);
  if (routed == report.records.end()) return absl::OkStatus();
  results::RoutingReport& routing = report.routing;
  routing.routing = routed->subject;
  for (const auto& [name, value] : routed->values) {
    if (name == "hot_device") routing.hot_device = std::get<int64_t>(value);
    if (name == "imbalance") routing.imbalance = std::get<double>(value);
    if (name == "dropped_percent") routing.dropped_percent = std::get<double>(value);
  }
  ProgramFlags program = flags.program;
  program.routing = {};
  program.verbose = program.pass_timings = false;
  ASSIGN_OR_RETURN(const Prepared balanced,
                   Prepare(source, flags.config, program, CompileOptionsOf(program)));
  ASSIGN_OR_RETURN(const Simulated simulated, Simulate(balanced, flags.machine));
  routing.balanced_step = simulated.report.step_time;
  return absl::OkStatus();
}

absl::Status Run(const RunFlags& flags) {
  std::vector<OutputPath> outputs = OutputsOf(flags.trace);
  outputs.push_back({"--report", flags.report});
  RETURN_IF_ERROR(CheckOutputs(outputs, InputsOf(flags.workload, flags.config)));
  RETURN_IF_ERROR(CheckFolders(flags.trace));
  std::optional<Progress> progress;
  progress.emplace("compiling " + flags.workload, flags.program.quiet);
  ASSIGN_OR_RETURN(const Source source, SourceOf(flags.workload));
  ASSIGN_OR_RETURN(const Prepared prepared, Prepare(source, flags.config, flags.program,
                                                    CompileOptionsOf(flags.program)));
  progress.reset();
  ASSIGN_OR_RETURN(const Recorded recorded, RecordingOf(flags.trace, prepared));
  if (const std::string warning = ExpectedEventsWarning(prepared, flags.machine);
      !warning.empty() && !flags.program.quiet) {
    PrintWarnings({warning});
  }
  progress.emplace("simulating " + prepared.name, flags.program.quiet);
  ASSIGN_OR_RETURN(Simulated simulated, Simulate(prepared, flags.machine, recorded));
  RETURN_IF_ERROR(AddRouting(source, flags, simulated.report));
  progress.reset();
  if (flags.program.verbose) {
    PrintNote(fmt::format("simulating took {:.1f} ms, {} events", simulated.seconds * 1e3,
                          simulated.timeline.events));
  }

  RETURN_IF_ERROR(WriteTraces(flags.trace, prepared, simulated, flags.program.quiet));
  if (!flags.report.empty()) {
    RETURN_IF_ERROR(results::WriteFileAtomically(flags.report, results::ToJson(simulated.report)));
  }
  if (flags.program.quiet) return absl::OkStatus();
  if (!flags.WritesToStdout()) {
    for (const auto& [what, text] : prepared.compiled.dumps) {
      RETURN_IF_ERROR(PrintResult(fmt::format("// {}\n{}\n", what, text)));
    }
    RETURN_IF_ERROR(
        PrintResult(results::Summarize(simulated.report, {flags.rollup.By(results::RollupBy::kOp),
                                                          flags.rollup.top, ResultColumns()})));
    if (flags.memory) {
      const size_t top = flags.rollup.top > 0 ? flags.rollup.top : kMemoryRows;
      RETURN_IF_ERROR(
          PrintResult(results::MemoryText(simulated.report, top, ResultColumns(kMemoryColumns))));
    }
  }
  PrintWarnings(simulated.report.warnings);
  return absl::OkStatus();
}

}  // namespace

Command AddRun(CLI::App& parent) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* app = parent.add_subcommand("run", "Simulate one step and print a summary");
  AddWorkloadFlags(*app, flags->workload, flags->config);
  AddTraceFlags(*app, flags->trace);
  CLI::Option* report =
      app->add_option("--report", flags->report, "Write the report as JSON; - is stdout")
          ->type_name("FILE");
  app->add_flag_callback(
         "--json", [flags] { flags->report = results::kStdout; },
         "Print the report, instead of the summary")
      ->excludes(report);
  app->add_flag("--memory", flags->memory,
                "Also print the contents of HBM at its peak, by owner, scope and array");
  AddRollupFlags(*app, flags->rollup);
  AddExplainFlag(*app, flags->program);
  AddProgramFlags(*app, flags->program);
  AddMachineFlags(*app, flags->machine);
  AddExamples(*app, {{"tpusim run step.pb --config v5e-4x2", "how long a step takes, and why"},
                     {"tpusim run step.pb --by scope --top 20", "where the step goes, by layer"},
                     {"tpusim run step.pb --trace step.pftrace", "for https://ui.perfetto.dev"},
                     {"tpusim run step.pb --html step.html", "a page for a browser"},
                     {"tpusim run step.pb --set ici.link_bytes_per_second=2x", "a faster network"},
                     {"tpusim run step.pb --json | tpusim check - --max-step 62ms", "for CI"}});
  return {app, [flags] { return Run(*flags); }};
}

}  // namespace tpusim::tools
