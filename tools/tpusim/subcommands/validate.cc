// tpusim validate: published measurements, simulated, and profiles of XProf.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/measured/validation.h"
#include "sim/results/report/atomic_file.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "tools/tpusim/subcommands/validate_kernels.h"
#include "tools/tpusim/subcommands/validate_profile.h"

namespace tpusim::tools {
namespace {

// The width where stdout is no terminal.
constexpr size_t kUsual = 200;
constexpr char kDefaultFile[] = "validation/measurements.json";
constexpr char kDefaultKernels[] = "validation/kernels_measured";

struct ValidateFlags {
  std::string file = kDefaultFile;
  ProfileFlags profile;
  std::string report;
  std::vector<std::string> chips;
  bool steps_of_models = false;  // --long
  bool kernels = false;
  ProgramFlags program;
  MachineFlags machine;
};

// Rows of the chips that were asked for.
absl::Status KeepChips(const std::vector<std::string>& chips, results::Measurements& all) {
  if (chips.empty()) return absl::OkStatus();
  std::set<std::string> known;
  for (const results::Measurement& m : all.rows) known.insert(m.chip);
  RETURN_IF_ERROR(CheckChips(chips, known));
  const auto other = [&chips](const auto& row) {
    return std::find(chips.begin(), chips.end(), row.chip) == chips.end();
  };
  std::erase_if(all.rows, other);
  std::erase_if(all.pending, other);
  return absl::OkStatus();
}

// The flags of the command line, and those of the compiler that the source had.
ProgramFlags FlagsOf(const results::Measurement& measurement, const ProgramFlags& common) {
  ProgramFlags flags = common;
  if (flags.xla_flags.empty()) flags.xla_flags = measurement.xla_flags;
  return flags;
}

// Options of published measurements and of a profile are not mixed.
absl::Status ValidateOne(const ValidateFlags& flags) {
  if (!flags.chips.empty() || flags.steps_of_models) {
    return UserError("--xplane: --chip and --long are of published measurements");
  }
  if (flags.file == kDefaultFile) {
    return UserError(
        "--xplane: name the program of the profile, too: tpusim validate step.pb --xplane PROFILE");
  }
  ProfileFlags profile = flags.profile;
  profile.workload = flags.file;
  profile.report = flags.report;
  return ValidateProfile(profile, flags.program, flags.machine);
}

absl::Status Validate(const ValidateFlags& flags) {
  if (!flags.profile.profile.empty()) return ValidateOne(flags);
  if (flags.kernels) {
    const std::string folder = flags.file == kDefaultFile ? kDefaultKernels : flags.file;
    return ValidateKernels({folder, flags.report, flags.chips, flags.steps_of_models},
                           flags.program, flags.machine);
  }
  RETURN_IF_ERROR(
      CheckOutputs({{"--report", flags.report}}, {{"file of measurements", flags.file}}));
  const absl::StatusOr<std::string> text = ReadText(flags.file);
  if (!text.ok()) {
    return UserError(fmt::format("{}; name a file of measurements, such as {} of the source tree",
                                 Message(text.status()), kDefaultFile));
  }
  absl::StatusOr<results::Measurements> parsed = results::ParseMeasurements(*text);
  if (!parsed.ok()) return UserError(fmt::format("{}: {}", flags.file, Message(parsed.status())));
  results::Measurements measurements = *std::move(parsed);
  RETURN_IF_ERROR(KeepChips(flags.chips, measurements));

  const size_t all = measurements.rows.size();
  if (!flags.steps_of_models) std::erase_if(measurements.rows, results::IsModelStep);
  const size_t left_out = all - measurements.rows.size();

  const std::filesystem::path folder = std::filesystem::path(flags.file).parent_path();
  std::vector<Task> tasks;
  for (const results::Measurement& m : measurements.rows) {
    tasks.push_back([&flags, &m, workload = (folder / m.workload).string()] {
      return SimulateToText(workload, /*config=*/"", FlagsOf(m, flags.program), flags.machine);
    });
  }
  std::vector<results::Outcome> outcomes;
  const std::vector<absl::StatusOr<std::string>> reports = InChildren(
      tasks, Processors(),
      [&](const TaskEnd& end) { ShowCount(end.count, tasks.size(), flags.program.quiet); });
  for (size_t i = 0; i < reports.size(); ++i) {
    const results::Measurement& m = measurements.rows[i];
    if (!reports[i].ok()) {
      return absl::Status(reports[i].status().code(),
                          fmt::format("{}: {}", m.id, Message(reports[i].status())));
    }
    ASSIGN_OR_RETURN(const results::Report report, results::FromJson(*reports[i]));
    ASSIGN_OR_RETURN(results::Outcome outcome, results::OutcomeOf(report, m));
    outcomes.push_back(std::move(outcome));
  }
  if (!flags.report.empty()) {
    RETURN_IF_ERROR(results::WriteFileAtomically(
        flags.report, results::ToJson(outcomes, measurements.pending, ThisProducer())));
  }
  if (flags.program.quiet || flags.report == results::kStdout) return absl::OkStatus();
  std::string table =
      results::FormatValidation(outcomes, measurements.pending, ResultColumns(kUsual));
  if (left_out > 0)
    table += fmt::format("\n{} steps of models were left out: --long runs them\n", left_out);
  return PrintResult(table);
}

}  // namespace

Command AddValidate(CLI::App& parent) {
  auto flags = std::make_shared<ValidateFlags>();
  CLI::App* app =
      parent.add_subcommand("validate", "Compare simulations with published measurements");
  app->add_option("measurements", flags->file,
                  "A file of measurements; with --xplane the program, WORKLOAD.pb")
      ->type_name("FILE.json")
      ->capture_default_str();
  CLI::Option* profile =
      app->add_option("--xplane", flags->profile.profile,
                      "Profile of the program on a TPU (jax.profiler.trace), a file or a "
                      "folder, to compare by category and by operation")
          ->type_name("PROFILE")
          ->group("Program");
  app->add_option("-c,--config", flags->profile.config,
                  "With --xplane: slice, such as v5e-4x2, or a JSON file (default: the "
                  "workload's)")
      ->type_name("CONFIG")
      ->needs(profile);
  app->add_option("--top", flags->profile.top, "With --xplane: most operations to list")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->needs(profile);
  app->add_flag("--kernels", flags->kernels,
                "Kernels that others measured, scored by operation and chip: a sample, all with "
                "--long; FILE.json is their folder then")
      ->excludes(profile);
  app->add_option("--chip", flags->chips, "Only measurements on this chip; may be repeated")
      ->type_name("CHIP")
      ->allow_extra_args(false);
  app->add_flag(
      "--long", flags->steps_of_models,
      "Also steps of models: training and inference, with their utilization and memory");
  CLI::Option* report =
      app->add_option("--report", flags->report,
                      "Write rows, errors and pending measurements as JSON; - is stdout")
          ->type_name("FILE");
  app->add_flag_callback(
         "--json", [flags] { flags->report = results::kStdout; },
         "Print rows, errors and what is pending as JSON, instead of the table")
      ->excludes(report);
  AddProgramFlags(*app, flags->program);
  AddMachineFlags(*app, flags->machine);
  AddExamples(*app,
              {{"tpusim validate", "in the source tree: short programs"},
               {"tpusim validate --long --chip v5e", "and whole steps of models, on one chip"},
               {"tpusim validate --kernels", "single kernels, scored by operation and chip"},
               {"tpusim validate own.json", "your own measurements (tpusim schema measurements)"},
               {"tpusim validate step.pb --xplane logdir", "a profile of yours, by category"}});
  return {app, [flags] { return Validate(*flags); }};
}

}  // namespace tpusim::tools
