// tpusim: how long a sharded JAX program takes on a slice of TPUs, and why.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "configs/names.h"
#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/out_of_memory.h"
#include "tools/tpusim/output/console.h"

namespace tpusim::tools {

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  if (absl::IsAborted(status)) return kExitBroken;
  if (absl::IsOutOfRange(status)) return kExitUsage;  // a value that does not fit the program
  return status.code() == absl::StatusCode::kInternal ? kExitInternalError : kExitUserError;
}

namespace {

// A broken invariant has printed where it is before it aborts.
extern "C" void ExitOnAbort(int) {
  results::RemoveTemporaries();
  ::_exit(kExitInternalError);
}

// There is nothing left to format a message with, and allocators do not all throw.
[[noreturn]] void EndWithoutMemory() {
  constexpr std::string_view kMessage =
      "tpusim: error: out of memory: the program needs more than this process may have\n";
  // Nothing is to be done if it cannot be said.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  results::RemoveTemporaries();
  ::_exit(kExitUserError);
}

// A value that is empty is one that a script left out (--report "$REPORT"), never one that was
// meant: it must not pass for an option that is not given.
void RejectEmptyValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0 || option->check_lname("xla-flags")) continue;
    option->check(CLI::Validator(
        [](std::string& value) -> std::string { return value.empty() ? "the value is empty" : ""; },
        ""));
  }
}

std::vector<std::string> NamesOf(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.app->get_name());
  return names;
}

// `tpusim --config v5e-4x2 step.pb` means `tpusim run ...`: run is put in
// unless the first argument is a subcommand or asks about tpusim itself.
std::vector<std::string> Arguments(int argc, char** argv, const std::vector<Command>& commands) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return arguments;
  const std::string& first = arguments.front();
  if (first == "-h" || first == "--help" || first == "--version") return arguments;
  const auto is_known = [names = NamesOf(commands)](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  // The parser would take the name for another subcommand.
  if (first == "help" && arguments.size() == 2 && is_known(arguments[1])) {
    return {arguments[1], "--help"};
  }
  if (!is_known(first)) arguments.insert(arguments.begin(), "run");
  return arguments;
}

// --help or --version: what is asked for, and exit code 0.
int Answer(const CLI::App& asked, bool version) {
  const std::string text = version ? "tpusim " TPUSIM_VERSION "\n" : HelpText(asked, HelpColumns());
  return ExitCode(PrintResult(text));
}

// "; the nearest is --report" if an option was misspelt, else "".
std::string NearestOption(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || name.size() < 3) continue;
    if (std::ranges::find(known, name) != known.end()) continue;
    return fmt::format("; the nearest is {}", configs::Nearest(name, known));
  }
  return "";
}

// Returns the subcommand that a name which is neither one nor a file nearly is; "" if there is
// none.
std::string MisspeltCommand(const std::string& name, const std::vector<Command>& commands) {
  std::error_code error;
  if (name.starts_with("-") || std::filesystem::exists(name, error)) return "";
  const std::vector<std::string> known = NamesOf(commands);
  if (std::ranges::find(known, name) != known.end()) return "";
  const std::string nearest = configs::Nearest(name, known);
  constexpr int64_t kSlips = 2;
  return configs::EditDistance(name, nearest) <= kSlips ? nearest : "";
}

int Report(const absl::Status& status) {
  const int code = ExitCode(status);
  if (code == kExitInternalError) {
    PrintInternalError(Message(status));
  } else if (code != 0) {
    PrintError(Message(status));
  }
  return code;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Simulates one step of a sharded JAX program on a slice of TPUs: how long it takes, and why.",
      "tpusim");
  app.set_version_flag("--version", "tpusim " TPUSIM_VERSION);
  app.require_subcommand(1);
  const std::vector<Command> commands = {
      AddRun(app),      AddCompare(app),   AddAdvise(app),     AddShard(app),      AddSearch(app),
      AddFlags(app),    AddCalibrate(app), AddFit(app),        AddCollective(app), AddCheck(app),
      AddValidate(app), AddConfigs(app),   AddCompile(app),    AddOpt(app),        AddKernel(app),
      AddPage(app),     AddSchema(app),    AddCompletion(app), AddMan(app),        AddHelp(app),
      AddVersion(app)};
  for (const Command& command : commands) RejectEmptyValues(*command.app);
  GroupOptions(app);
  AddExamples(app,
              {{"tpusim step.pb --config v5e-4x2", "how long a step takes, and why"},
               {"tpusim compare step.pb -c v5e-4x2 -c v6e-4x2", "slices side by side"},
               {"tpusim advise step.pb --config v5e-4x2", "what would make it shorter"},
               {"tpusim step.pb --html step.html", "a page with the timeline, for a browser"}});
  // An interactive user is shown where to begin; a script whose variables are empty gets an error.
  if (argc < 2) {
    PrintError("no workload given; see tpusim --help, or try");
    std::fputs(ThreeToTry().c_str(), stderr);
    return kExitUsage;
  }
  std::vector<std::string> arguments = Arguments(argc, argv, commands);
  if (const std::string meant = MisspeltCommand(argv[1], commands); !meant.empty()) {
    PrintError(
        fmt::format("there is no file and no subcommand '{}'; the nearest is {}; see "
                    "tpusim --help",
                    argv[1], meant));
    return kExitUsage;
  }
  const Command* chosen = nullptr;
  for (const Command& command : commands) {
    if (command.app->get_name() == arguments.front()) chosen = &command;
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return Answer(chosen == nullptr ? app : *chosen->app, error.get_name() == "CallForVersion");
    }
    const bool unknown =
        chosen != nullptr && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    PrintError(fmt::format("{}{}; see tpusim {}--help", error.what(),
                           unknown ? NearestOption(*chosen->app, arguments) : "",
                           chosen ? chosen->app->get_name() + " " : ""));
    return kExitUsage;
  }
  TPUSIM_CHECK(chosen != nullptr, "the parser requires a subcommand");
  SetProducer({TPUSIM_VERSION, CommandLineOf(*chosen->app)});
  return Report(chosen->execute());
}

}  // namespace
}  // namespace tpusim::tools

int main(int argc, char** argv) {
  std::signal(SIGABRT, tpusim::tools::ExitOnAbort);
  tpusim::tools::SetOutOfMemoryHandler(tpusim::tools::EndWithoutMemory);
  tpusim::results::RemoveTemporariesOnSignals();
  try {
    return tpusim::tools::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    tpusim::tools::EndWithoutMemory();
  } catch (const std::exception& error) {
    tpusim::tools::PrintInternalError(error.what());
  }
  return tpusim::tools::kExitInternalError;
}
