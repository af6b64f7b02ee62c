// tpusim compare: several programs on one slice, or one program on several.
#include "sim/results/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/atomic_file.h"
#include "sim/results/page.h"
#include "sim/results/report.h"
#include "tools/tpusim/children.h"
#include "tools/tpusim/command.h"
#include "tools/tpusim/console.h"
#include "tools/tpusim/outputs.h"
#include "tools/tpusim/pipeline.h"
#include "tools/tpusim/rollup_flags.h"

namespace tpusim::tools {
namespace {

struct CompareFlags {
  std::vector<std::string> workloads, configs;
  std::string html;
  RollupFlags rollup;
  ProgramFlags program;
  MachineFlags machine;
};

// Files may hold programs of one name; then the files' names tell them apart.
void TellApart(const std::vector<std::string>& files, std::vector<results::Report>& reports) {
  std::map<std::string, std::string> file_of;
  bool clash = false;
  for (size_t i = 0; i < files.size(); ++i) {
    clash |= file_of.emplace(reports[i].workload, files[i]).first->second != files[i];
  }
  if (!clash) return;
  for (size_t i = 0; i < files.size(); ++i) reports[i].workload = NameOf(files[i]);
}

// A page with all of them.
absl::Status WriteComparison(const std::string& path, const std::vector<results::Report>& reports) {
  std::vector<results::PageRun> runs;
  for (const results::Report& report : reports) {
    runs.push_back({fmt::format("{} on {}", report.workload, report.config),
                    results::ToJson(report, results::JsonDetail::kExchange), ""});
  }
  return results::WriteFileAtomically(
      path, results::PageOfRuns(fmt::format("{} steps compared", runs.size()), runs));
}

absl::Status Compare(const CompareFlags& flags) {
  std::vector<InputPath> inputs;
  for (const std::string& workload : flags.workloads) inputs.push_back({"workload", workload});
  RETURN_IF_ERROR(CheckOutputs({{"--html", flags.html}}, inputs));
  std::vector<std::string> configs = flags.configs;
  if (configs.empty()) configs.emplace_back();  // each workload's own
  std::vector<Task> tasks;
  std::vector<std::string> files;
  for (const std::string& workload : flags.workloads) {
    for (const std::string& config : configs) {
      files.push_back(workload);
      tasks.push_back([&, workload, config] {
        return SimulateToText(workload, config, flags.program, flags.machine);
      });
    }
  }
  std::vector<results::Report> reports;
  for (const absl::StatusOr<std::string>& text : InChildren(tasks, Processors())) {
    RETURN_IF_ERROR(text.status());
    ASSIGN_OR_RETURN(results::Report report, results::FromJson(*text));
    reports.push_back(std::move(report));
  }
  TellApart(files, reports);
  if (!flags.html.empty()) RETURN_IF_ERROR(WriteComparison(flags.html, reports));
  results::CompareOptions options;
  options.by = flags.rollup.By(options.by);
  if (flags.rollup.top > 0) options.top = flags.rollup.top;
  RETURN_IF_ERROR(PrintResult(results::Compare(reports, options)));
  if (flags.program.quiet) return absl::OkStatus();
  for (const results::Report& report : reports) {
    std::vector<std::string> warnings;
    for (const std::string& warning : report.warnings) {
      warnings.push_back(fmt::format("{} on {}: {}", report.workload, report.config, warning));
    }
    PrintWarnings(warnings);
  }
  return absl::OkStatus();
}

}  // namespace

Command AddCompare(CLI::App& parent) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* app = parent.add_subcommand("compare", "Put several workloads or slices side by side");
  app->add_option("workloads", flags->workloads, "Two or more, or one with several --config")
      ->type_name("WORKLOAD.pb...")
      ->required();
  app->add_option("-c,--config", flags->configs, "A slice; repeat it to compare slices")
      ->type_name("CONFIG")
      ->allow_extra_args(false);
  app->add_option("--html", flags->html, "Write a page to be opened in a browser")
      ->type_name("FILE");
  AddRollupFlags(*app, flags->rollup);
  AddProgramFlags(*app, flags->program);
  AddMachineFlags(*app, flags->machine);
  app->callback([flags] {
    if (flags->workloads.size() * std::max<size_t>(flags->configs.size(), 1) < 2) {
      throw CLI::ValidationError("compare", "give two or more workloads, or several --config");
    }
  });
  return {app, [flags] { return Compare(*flags); }};
}

}  // namespace tpusim::tools
