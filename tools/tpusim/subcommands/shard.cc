// tpusim shard: the mesh and the shardings with the shortest step, and how sure that is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "configs/chip_file.h"
#include "configs/limit.h"
#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "tools/tpusim/shard/answer.h"
#include "tools/tpusim/shard/find.h"
#include "tools/tpusim/shard/paste.h"
#include "workloads/search/stated_dims.h"

namespace tpusim::tools {
namespace {

struct ShardFlags {
  FindOptions find;
  std::vector<std::string> configs;
  std::string axes, report, html;
  std::optional<double> price;
  size_t top = 8;
  bool explain = false, json = false;
};

// The program as it is, the best and the next best: a report of each.
absl::StatusOr<std::vector<results::Compared>> ComparedOf(const FindProblem& problem,
                                                          const FindOutcome& outcome) {
  std::vector<std::pair<std::string, ProgramFlags>> wanted;
  const FindOptions& options = problem.options;
  if (outcome.as_it_is && outcome.as_it_is->kind == search::Verdict::Kind::kSimulated) {
    wanted.emplace_back("as it is", options.program);
  }
  constexpr const char* kNames[] = {"found", "next best"};
  for (size_t i = 0; i < std::min(outcome.found.size(), std::size(kNames)); ++i) {
    Options stated = OptionsOf(problem, outcome.found[i].candidate);
    ProgramFlags flags = options.program;
    flags.mesh = std::move(stated.mesh);
    flags.arguments = std::move(stated.arguments);
    for (std::string& text : stated.constraints) flags.constraints.push_back(std::move(text));
    const search::Variant& variant = VariantOf(problem, outcome.found[i].candidate);
    flags.donate = flags.donate || variant.donated;
    for (const remat::StatedPolicy& policy : variant.remat) flags.remat.push_back(policy.text);
    wanted.emplace_back(kNames[i], std::move(flags));
  }
  std::vector<Task> tasks;
  for (auto& [name, flags] : wanted) {
    flags.verbose = false;
    tasks.push_back([&options, &flags] {
      return SimulateToText(options.workload, options.config, flags, options.machine,
                            results::JsonDetail::kPlaced);
    });
  }
  std::vector<results::Compared> compared;
  const std::vector<absl::StatusOr<std::string>> texts = InChildren(tasks, options.jobs);
  for (size_t i = 0; i < texts.size(); ++i) {
    RETURN_IF_ERROR(texts[i].status());
    ASSIGN_OR_RETURN(results::Report report, results::FromJson(*texts[i]));
    report.workload = wanted[i].first;
    compared.push_back({report.workload, report.config, std::move(report), ""});
  }
  return compared;
}

// The user's own options that are of the program and its machine, not of the search.
std::vector<std::string> WordsOfRun() {
  const std::set<std::string> of_search = {"axes",
                                           "fix",
                                           "forbid",
                                           "gap",
                                           "all",
                                           "seconds",
                                           "jobs",
                                           "store",
                                           "price",
                                           "explain",
                                           "keep-constraints",
                                           "may-donate",
                                           "may-constrain",
                                           "mesh",
                                           "config"};
  std::vector<std::string> words;
  for (const std::string& word : ThisProducer().command_line) {
    if (!word.starts_with("--")) continue;
    if (!of_search.contains(word.substr(2, word.find('=') - 2))) words.push_back(word);
  }
  return words;
}

absl::Status Shard(const ShardFlags& flags) {
  std::vector<InputPath> inputs = {{"workload", flags.find.workload}};
  for (const std::string& config : flags.configs) {
    if (configs::IsJsonPath(config)) inputs.push_back({"configuration", config});
  }
  RETURN_IF_ERROR(CheckOutputs(
      {{"--report", flags.report}, {"--html", flags.html}, {"--store", flags.find.store}}, inputs));
  std::vector<std::string> configs = flags.configs;
  if (configs.empty()) configs.emplace_back();
  std::vector<std::unique_ptr<FindProblem>> problems;
  const LimitScope of_search;
  for (const std::string& config : configs) {
    FindOptions options = flags.find;
    options.config = config;
    if (!flags.axes.empty()) options.axes = absl::StrSplit(flags.axes, ',');
    if (options.jobs == 0) options.jobs = Processors();
    ASSIGN_OR_RETURN(std::unique_ptr<FindProblem> problem, ProblemOf(options));
    problems.push_back(std::move(problem));
  }
  if (flags.explain) {
    for (const auto& problem : problems) RETURN_IF_ERROR(PrintResult(ExplainedText(*problem)));
    return absl::OkStatus();
  }
  const std::string report = flags.json ? std::string(results::kStdout) : flags.report;
  const bool prints = report != results::kStdout && !flags.find.program.quiet;
  std::vector<SliceAnswer> answers;
  for (const auto& problem : problems) {
    if (!flags.find.program.quiet) PrintWarnings(problem->config().warnings);
    SliceAnswer& answer = answers.emplace_back();
    answer.problem = problem.get();
    ASSIGN_OR_RETURN(answer.outcome, Find(*problem));
    if (!prints && flags.html.empty()) continue;  // JSON has no comparison
    ASSIGN_OR_RETURN(answer.compared, ComparedOf(*problem, answer.outcome));
  }
  if (flags.find.program.verbose) PrintLimits(of_search);
  const auto has_step = [](const SliceAnswer& answer) {
    return answer.outcome.shortest().has_value();
  };
  if (std::ranges::none_of(answers, has_step)) {
    return UserError(
        fmt::format("{}: {}", answers[0].problem->config().name, NothingFound(answers[0])));
  }
  const AnswerOptions options{flags.price, flags.top, ResultColumns(), WordsOfRun()};
  if (!report.empty()) {
    RETURN_IF_ERROR(
        results::WriteFileAtomically(report, results::JsonText(ToJson(answers, options))));
  }
  if (!flags.html.empty()) {
    ASSIGN_OR_RETURN(const std::string page, PageOf(answers, options));
    RETURN_IF_ERROR(results::WriteFileAtomically(flags.html, page));
  }
  if (prints) {
    std::string text;
    for (const SliceAnswer& answer : answers) {
      text += (text.empty() ? "" : "\n") + ToText(answer, options);
    }
    RETURN_IF_ERROR(PrintResult(text));
  }
  return absl::OkStatus();
}

// Texts of which `parse` says itself what is wrong.
std::string IsStatedDims(const std::string& text) {
  const auto parsed = search::ParseStatedDims(text);
  return parsed.ok() ? "" : Message(parsed.status());
}

// "data,model": names, each once.
std::string IsAxes(const std::string& text) {
  const std::vector<std::string> names = absl::StrSplit(text, ',');
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty() || name.find_first_of("=:()'\" ") != std::string::npos ||
        !seen.insert(name).second) {
      return fmt::format("\"{}\" is no list of names of axes, such as data,model", text);
    }
  }
  return "";
}

}  // namespace

Command AddShard(CLI::App& parent) {
  auto flags = std::make_shared<ShardFlags>();
  CLI::App* app = parent.add_subcommand(
      "shard", "Find the mesh and the shardings with the shortest step, with a lower bound");
  FindOptions& find = flags->find;
  app->add_option("workload", find.workload, "A file of tpusim.export, with any shardings")
      ->type_name("WORKLOAD.pb")
      ->required();
  app->add_option("-c,--config", flags->configs,
                  "Slice, such as v5e-4x2, or a JSON file; repeat it to search several "
                  "(default: the workload's)")
      ->type_name("CONFIG")
      ->allow_extra_args(false);
  app->add_option("--axes", flags->axes,
                  "Names of mesh axes, two at least (default: the program's)")
      ->type_name("NAME,...")
      ->check(IsAxes);
  app->add_option("--fix", find.fixed,
                  "Fix the sharding of an argument, and of all dimensions that are decided with "
                  "it; ? leaves a dimension open, * in a name stands for any text")
      ->type_name("ARGUMENT=P(?, 'x')")
      ->allow_extra_args(false)
      ->check(IsStatedDims);
  app->add_option("--forbid", find.forbidden, "Exclude a sharding of an argument's dimensions")
      ->type_name("ARGUMENT=P(?, 'x')")
      ->allow_extra_args(false)
      ->check(IsStatedDims);
  app->add_flag("--keep-constraints", find.keeps_constraints,
                "Keep the program's sharding constraints, by names of axes; otherwise they "
                "follow the decisions");
  app->add_option("--may-constrain", find.may_constrain,
                  "Also search constraints on these values: a name of checkpoint_name, the end "
                  "of a path of scopes, or a value as in --constrain; may be repeated")
      ->type_name("VALUE")
      ->allow_extra_args(false);
  CLI::Option* may_donate =
      app->add_flag("--may-donate", find.may_donate,
                    "Also search with all arguments donated, as by --donate");
  app->add_flag("--explain", flags->explain,
                "Print the decisions, their sizes and conflicts, and the number of choices; do "
                "not search");
  app->add_option("--gap", find.gap,
                  "Stop at a step that no other can beat by more than this share")
      ->type_name("SHARE")
      ->check(CLI::Range(0.0, 1.0));
  app->add_flag("--all", find.all, "Also simulate choices that cannot be the best");
  app->add_option("--seconds", find.seconds,
                  "Most seconds for each slice; 0: search to the end")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--jobs", find.jobs, "Processes (default: the processors)")
      ->type_name("N")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  app->add_option("--store", find.store,
                  "Keep verdicts on candidates in this SQLite file; a repeated search continues "
                  "from it")
      ->type_name("FILE.sqlite");
  app->add_option("--price", flags->price, "Price of a chip-hour, in any currency")
      ->type_name("NUMBER")
      ->check(CLI::PositiveNumber);
  CLI::Option* report =
      app->add_option("--report", flags->report, "Write the answer as JSON; - is stdout")
          ->type_name("FILE");
  app->add_flag("--json", flags->json, "Print JSON")->excludes(report);
  app->add_option("--html", flags->html, "Write a page for a browser")
      ->type_name("FILE");
  app->add_option("--top", flags->top, "Rows of tables")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  AddProgramFlags(*app, find.program);
  may_donate->excludes("--keep-argument");
  AddMachineFlags(*app, find.machine);
  AddExamples(*app,
              {{"tpusim shard step.pb --config v5e-16x16 --explain", "what there is to decide"},
               {"tpusim shard step.pb --config v5e-16x16 --seconds 600 --store step.sqlite",
                "the best of ten minutes, and how far from the optimum it may be"},
               {"tpusim shard step.pb --fix \"params/*/up=P(?, 'model')\"", "one decision made"}});
  return {app, [flags] {
            if (!flags->find.program.arguments.empty()) {
              return UserError("--shard: what is fixed for the search is --fix ARGUMENT=SPEC");
            }
            return Shard(*flags);
          }};
}

}  // namespace tpusim::tools
