// tpusim opt: passes of the compiler on one module, text out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/printable.h"
#include "configs/status_macros.h"
#include "configs/xla_flags.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/broken_pass.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/compiler/optimize.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/passes/passes.h"

namespace tpusim::tools {
namespace {

struct OptFlags {
  std::string module, config, output;
  std::vector<std::string> dump_after;
  bool json = false, list_annotations = false;
  ProgramFlags program;
};

// Modules are printed so that they can be read again.
constexpr hlo::PrintOptions kWhole = {.large_constants = true};

// Warns of a module that came scheduled and is not any more.
void WarnOfDroppedOrder(const std::vector<passes::PassRun>& runs) {
  const auto run = std::ranges::find_if(runs, &passes::PassRun::dropped_order);
  if (run == runs.end()) return;
  PrintWarnings({fmt::format(
      "the module came scheduled and is not any more: pass {} changed it; the pass schedule "
      "orders it anew",
      run->pass)});
}

// One annotation per line, with its meaning and stages below.
std::string AnnotationList() {
  std::string text;
  for (const hlo::AnnotationRow& row : hlo::AnnotationTable()) {
    text += fmt::format("{} ({})\n  {}\n  written by {}; read by {}; ", row.name, row.type,
                        row.meaning, row.writer, row.readers);
    text += row.dropped_by == "-" ? "stays\n" : fmt::format("dropped by {}\n", row.dropped_by);
  }
  return text;
}

absl::Status Opt(const OptFlags& flags) {
  if (flags.list_annotations) return PrintResult(AnnotationList());
  if (flags.module.empty()) return UserError("opt: MODULE.hlo is required");
  RETURN_IF_ERROR(CheckOutputs({{"-o", flags.output}}, InputsOf(flags.module, flags.config)));
  ASSIGN_OR_RETURN(const Source source, SourceOf(flags.module));
  ASSIGN_OR_RETURN(hlo::ImportedWorkload imported, source.import());
  const std::string slice = flags.config.empty() ? imported.workload.config() : flags.config;
  if (slice.empty()) {
    return UserError(fmt::format("{} names no slice: give one with --config", flags.module));
  }
  ASSIGN_OR_RETURN(
      configs::Config config,
      configs::LoadConfig(slice, flags.program.overrides,
                          CompilerFor(flags.program, CompilerOfProgram(imported.workload))));
  for (const auto& [text, origin] :
       {std::pair<std::string, std::string_view>(imported.workload.xla_flags(), kProgramsFlags),
        std::pair<std::string, std::string_view>(flags.program.xla_flags,
                                                 configs::kXlaFlagsOption)}) {
    ASSIGN_OR_RETURN(const std::vector<std::string> warnings,
                     configs::ApplyXlaFlags(text, config.chip, origin));
    PrintWarnings(warnings);
  }
  std::string text;
  compiler::OptimizeOptions options;
  options.passes = flags.program.passes;
  const compiler::CompileOptions stated = CompileOptionsOf(flags.program);
  options.trip_counts = stated.trip_counts;
  options.stated = stated.stated;
  options.device_order = stated.device_order;
  options.algorithms = stated.algorithms;
  const auto& memories = imported.workload.argument_memory_kinds();
  options.stated.argument_memories.assign(memories.begin(), memories.end());
  options.stated.partitions = imported.workload.num_partitions() > 0
                                  ? imported.workload.num_partitions()
                                  : imported.num_partitions;
  options.pipeline.verify = flags.program.verify_passes;
  options.pipeline.explain = flags.program.explain;
  options.pipeline.after_pass = [&](const passes::PassRun& run, const hlo::Module& module) {
    const auto wants = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, run.pass) != names.end();
    };
    if (wants(flags.program.explain)) {
      text += fmt::format("// decisions of {}\n{}\n", run.pass, passes::DecisionsOf(run));
    }
    if (!wants(flags.dump_after)) return;
    text += fmt::format("// after {}\n{}\n", run.pass, hlo::ToString(module, kWhole));
  };
  options.costs = StatedCostsOf(flags.program);
  const auto replay = [&](passes::PassWatch& watch, BrokenPass::Compiled& what) -> absl::Status {
    ASSIGN_OR_RETURN(const hlo::ImportedWorkload again, source.import());
    ASSIGN_OR_RETURN(compiler::DevicePlacement placement,
                     compiler::PlacementOf(config, options));
    what.partitions = options.stated.partitions;
    what.device_of_partition = std::move(placement.device_of_partition);
    compiler::OptimizeOptions until = options;
    until.pipeline.watch = &watch;
    until.pipeline.after_pass = nullptr;
    return compiler::Optimize(*again.module, config, until).status();
  };
  BrokenPass broken(replay, OptOptionsOf(slice, flags.program.overrides, flags.program));
  options.pipeline.watch = &broken;
  absl::StatusOr<compiler::Optimized> made = compiler::Optimize(*imported.module, config, options);
  if (!made.ok()) return broken.Explained(made.status());
  const compiler::Optimized optimized = *std::move(made);
  const std::vector<passes::PassRun>& runs = optimized.runs;
  for (const std::string& name : optimized.unused_costs) {
    PrintWarnings(
        {fmt::format("--cost {}=...: no pass asked for a kernel, collective or transfer "
                     "of this name",
                     name)});
  }
  text += hlo::ToString(*imported.module, kWhole);
  if (imported.module->entry()->schedule().empty()) WarnOfDroppedOrder(runs);
  for (const passes::PassRun& run : runs) PrintWarnings(TextsOf(run.records, Action::kWarned));
  if (flags.program.pass_timings) PrintPassRuns(runs);
  if (flags.json) {
    nlohmann::ordered_json json = results::HeadOf("tpusim.opt/1", ThisProducer());
    json["text"] = text;
    json["passes"] = PassRunsJson(runs);
    return PrintResult(results::JsonText(json));
  }
  if (flags.output.empty()) return PrintResult(text);
  return results::WriteFileAtomically(flags.output, configs::PrintableLines(text));
}

std::string Footer() {
  std::string text = "Passes:\n";
  for (const passes::Pass& pass : passes::AllPasses()) {
    text += fmt::format("  {:<26}{}\n", pass.name, pass.description);
    for (const passes::PassOption& option : pass.options) {
      text += fmt::format("  {:<26}  {}={}: {}\n", "", option.name, option.fallback,
                          option.description);
    }
  }
  return text +
         fmt::format("Those that begin with state- always run, in front. By default:\n  {}\n",
                     Spaced(passes::DefaultPipeline()));
}

}  // namespace

Command AddOpt(CLI::App& parent) {
  auto flags = std::make_shared<OptFlags>();
  CLI::App* app =
      parent.add_subcommand("opt", "Run passes of the compiler on a partitioned module");
  CLI::Option* module = app->add_option("module", flags->module, "HLO text or any HLO proto")
                            ->type_name("MODULE.hlo");
  app->add_flag("--list-annotations", flags->list_annotations,
                "Print the attributes tpusim.* that stages write for later stages, and exit")
      ->excludes(module);
  app->add_option("-c,--config", flags->config,
                  "Slice, such as v5e-4x2, or a JSON file (default: the module's)")
      ->type_name("CONFIG");
  CLI::Option* output =
      app->add_option("-o,--output", flags->output, "Write the text to this file instead of "
                                                    "stdout")
          ->type_name("FILE");
  app->add_option("--dump-after", flags->dump_after, "Also print the module after this pass")
      ->type_name("PASS")
      ->allow_extra_args(false);
  AddExplainFlag(*app, flags->program);
  app->add_flag("--json", flags->json, "Print JSON: the text, and the changes of passes")
      ->excludes(output);
  AddPassFlags(*app, flags->program);
  AddPlacementFlags(*app, flags->program);
  AddCostFlag(*app, flags->program);
  AddExamples(
      *app,
      {{"tpusim opt step.hlo --config v5e-4x2", "the passes of the compiler, one after another"},
       {"tpusim opt step.hlo -c v5e-4x2 --passes simplify,layout", "these alone"},
       {"tpusim opt step.hlo -c v5e-4x2 --passes schedule --cost dot.3=40us",
        "the order if this product took so long"}},
      Footer());
  return {app, [flags] { return Opt(*flags); }};
}

}  // namespace tpusim::tools
