// The subcommands of the tpusim binary.
//
// Each subcommand is one file with one Add function. It registers its options
// with the command line parser and returns what to execute when the user chose
// it. A Status that comes back decides the exit code (ExitCode); usage errors
// never get that far, the parser reports them.
//
// The room answers how options are declared, grouped and explained; `Command` is its entry point.
#ifndef TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_COMMAND_H_
#define TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_COMMAND_H_

#include <functional>

#include "absl/status/status.h"

// CLI11 takes seconds to compile: only the files that register options include it.
namespace CLI {
class App;
}  // namespace CLI

namespace tpusim::tools {

struct Command {
  CLI::App* app = nullptr;
  std::function<absl::Status()> execute;
};

Command AddRun(CLI::App& parent);
Command AddCompile(CLI::App& parent);
Command AddOpt(CLI::App& parent);
Command AddCompare(CLI::App& parent);
Command AddCollective(CLI::App& parent);
Command AddFit(CLI::App& parent);
Command AddFlags(CLI::App& parent);
Command AddCalibrate(CLI::App& parent);
Command AddAdvise(CLI::App& parent);
Command AddCheck(CLI::App& parent);
Command AddCompletion(CLI::App& parent);
Command AddConfigs(CLI::App& parent);
Command AddHelp(CLI::App& parent);
Command AddKernel(CLI::App& parent);
Command AddMan(CLI::App& parent);
Command AddSchema(CLI::App& parent);
Command AddSearch(CLI::App& parent);
Command AddShard(CLI::App& parent);
Command AddPage(CLI::App& parent);
Command AddValidate(CLI::App& parent);
Command AddVersion(CLI::App& parent);

inline constexpr int kExitUserError = 1;       // the workload or the configuration is at fault
inline constexpr int kExitUsage = 2;           // the command line is
inline constexpr int kExitBroken = 3;          // a limit of `tpusim check` is broken
inline constexpr int kExitInternalError = 70;  // tpusim is

int ExitCode(const absl::Status& status);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_COMMAND_H_
