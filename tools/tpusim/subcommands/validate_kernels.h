// tpusim validate --kernels: kernels that others measured, a program each.
#ifndef TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_VALIDATE_KERNELS_H_
#define TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_VALIDATE_KERNELS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/tpusim/command_line/program_flags.h"

namespace tpusim::tools {

struct KernelsFlags {
  std::string folder;              // rows.jsonl.gz, and the program of row N as programs/N.pb.gz
  std::string report;              // JSON; "" = the table
  std::vector<std::string> chips;  // none: all
  bool all = false;                // rows, not a sample
};

// Error: nothing was measured on one of `chips`; the message names those of `known`.
absl::Status CheckChips(const std::vector<std::string>& chips, const std::set<std::string>& known);

// Simulates the programs and prints scores by group and chip, or writes them with all rows. A
// program that does not run is a row without a figure, and is counted.
absl::Status ValidateKernels(const KernelsFlags& flags, const ProgramFlags& program,
                             const MachineFlags& machine);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_VALIDATE_KERNELS_H_
