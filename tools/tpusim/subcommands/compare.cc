// tpusim compare: several programs on one slice, or one program on several.
#include "sim/results/report/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/chip_file.h"
#include "configs/status_macros.h"
#include "sim/results/page/page.h"
#include "sim/results/report/alignment.h"
#include "sim/results/report/alignment_output.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/report.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "tools/tpusim/pipeline/trace_flags.h"

namespace tpusim::tools {
namespace {

struct CompareFlags {
  std::vector<std::string> workloads, configs;
  std::string report, html;
  bool json = false;
  RollupFlags rollup;
  ProgramFlags program;
  MachineFlags machine;
};

// Files may hold programs of one name; then the files' names tell them apart.
void TellApart(const std::vector<std::string>& files, std::vector<results::Compared>& compared) {
  std::map<std::string, std::string> file_of;
  bool clash = false;
  for (size_t i = 0; i < files.size(); ++i) {
    clash |= file_of.emplace(compared[i].workload, files[i]).first->second != files[i];
  }
  if (!clash) return;
  for (size_t i = 0; i < files.size(); ++i) compared[i].workload = NameOf(files[i]);
}

// Returns a column, also of a program that does not fit. Errors: all others.
absl::StatusOr<results::Compared> ColumnOf(const std::string& file, const std::string& config,
                                           const absl::StatusOr<std::string>& text) {
  results::Compared column;
  if (text.ok()) {
    ASSIGN_OR_RETURN(column.report, results::FromJson(*text));
    column.workload = column.report->workload;
    column.config = column.report->config;
    return column;
  }
  if (!absl::IsResourceExhausted(text.status())) return text.status();
  column.workload = NameOf(file);
  column.config = config.empty() ? "its own slice" : config;
  column.problem = OneLine(Message(text.status()));
  return column;
}

// A page with all that have a report; its title names the others.
absl::Status WritePage(const std::string& path, const std::vector<results::Compared>& compared) {
  std::vector<results::PageRun> runs;
  const results::Report* first = nullptr;
  std::string others;
  for (const results::Compared& c : compared) {
    const std::string name = fmt::format("{} on {}", c.workload, c.config);
    if (!c.report) {
      others += fmt::format("; {} does not fit", name);
      continue;
    }
    runs.push_back({name, results::ToJson(*c.report, results::JsonDetail::kExchange), ""});
    if (first == nullptr) {
      first = &*c.report;
    } else {
      const std::string letter = results::LetterOf(runs.size() - 1);
      runs.back().difference =
          results::ExplainDifference(results::LetterOf(0), *first, letter, *c.report);
    }
  }
  nlohmann::ordered_json tabs = nlohmann::ordered_json::array();
  for (const results::Alignment& alignment : results::Alignments(compared)) {
    tabs.push_back(results::AlignmentTab(alignment));
  }
  return results::WriteFileAtomically(
      path, results::PageOfRuns(fmt::format("{} steps compared{}", runs.size(), others), runs,
                                tabs.empty() ? "" : results::JsonText(tabs)));
}

absl::Status Compare(const CompareFlags& flags) {
  std::vector<InputPath> inputs;
  for (const std::string& workload : flags.workloads) inputs.push_back({"workload", workload});
  for (const std::string& config : flags.configs) {
    if (configs::IsJsonPath(config)) inputs.push_back({"configuration", config});
  }
  RETURN_IF_ERROR(CheckOutputs({{"--report", flags.report}, {"--html", flags.html}}, inputs));
  std::vector<std::string> configs = flags.configs;
  if (configs.empty()) configs.emplace_back();  // each workload's own
  std::vector<Task> tasks;
  std::vector<std::pair<std::string, std::string>> asked;  // file and slice
  for (const std::string& workload : flags.workloads) {
    for (const std::string& config : configs) {
      asked.emplace_back(workload, config);
      tasks.push_back([&, workload, config] {
        return SimulateToText(workload, config, flags.program, flags.machine,
                              results::JsonDetail::kPlaced);
      });
    }
  }
  std::vector<std::string> files;
  std::vector<results::Compared> compared;
  const std::vector<absl::StatusOr<std::string>> texts = InChildren(
      tasks, Processors(),
      [&](const TaskEnd& end) { ShowCount(end.count, tasks.size(), flags.program.quiet); });
  for (size_t i = 0; i < texts.size(); ++i) {
    files.push_back(asked[i].first);
    ASSIGN_OR_RETURN(results::Compared column, ColumnOf(asked[i].first, asked[i].second, texts[i]));
    compared.push_back(std::move(column));
  }
  TellApart(files, compared);
  const std::string report = flags.json ? std::string(results::kStdout) : flags.report;
  if (!report.empty()) {
    RETURN_IF_ERROR(
        results::WriteFileAtomically(report, results::CompareJson(compared, ThisProducer())));
  }
  if (!flags.html.empty()) RETURN_IF_ERROR(WritePage(flags.html, compared));
  if (report != results::kStdout) {
    results::CompareOptions options;
    options.width = ResultColumns();
    options.by = flags.rollup.By(options.by);
    if (flags.rollup.top > 0) options.top = flags.rollup.top;
    RETURN_IF_ERROR(PrintResult(results::Compare(compared, options)));
  }
  if (flags.program.quiet) return absl::OkStatus();
  for (const results::Compared& c : compared) {
    if (!c.report) continue;
    std::vector<std::string> warnings;
    for (const std::string& warning : c.report->warnings) {
      warnings.push_back(fmt::format("{} on {}: {}", c.workload, c.config, warning));
    }
    PrintWarnings(warnings);
  }
  return absl::OkStatus();
}

}  // namespace

Command AddCompare(CLI::App& parent) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* app = parent.add_subcommand("compare", "Compare several workloads or slices side by "
                                                   "side");
  app->add_option("workloads", flags->workloads, "Two or more files, or one with several "
                                                 "--config")
      ->type_name("WORKLOAD.pb...")
      ->required();
  app->add_option("-c,--config", flags->configs, "Slice; repeat it to compare slices")
      ->type_name("CONFIG")
      ->allow_extra_args(false);
  CLI::Option* report =
      app->add_option("--report", flags->report, "Write all reports as JSON; - is stdout")
          ->type_name("FILE");
  app->add_flag("--json", flags->json, "Print all reports as JSON, instead of tables")
      ->excludes(report);
  app->add_option("--html", flags->html, "Write a page for a browser")
      ->type_name("FILE");
  AddRollupFlags(*app, flags->rollup);
  AddProgramFlags(*app, flags->program);
  AddMachineFlags(*app, flags->machine);
  AddExamples(*app, {{"tpusim compare before.pb after.pb", "two programs"},
                     {"tpusim compare step.pb -c v5e-4x2 -c v6e-4x2", "two slices"},
                     {"tpusim compare before.pb after.pb --html both.html", "as a page"}});
  app->callback([flags] {
    if (std::ranges::find(flags->workloads, "-") != flags->workloads.end()) {
      throw CLI::ValidationError("compare", "programs are read from files, not from stdin");
    }
    if (flags->workloads.size() * std::max<size_t>(flags->configs.size(), 1) < 2) {
      throw CLI::ValidationError("compare", "give two or more workloads, or several --config");
    }
  });
  return {app, [flags] { return Compare(*flags); }};
}

}  // namespace tpusim::tools
