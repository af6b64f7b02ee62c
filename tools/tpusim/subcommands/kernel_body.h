// Prices of the bodies of Pallas kernels: the part of `tpusim kernel` that --body asks for.
//
// Nothing has to be stated for it: what a loop on data does in one pass stands by itself, with the
// name that --trip-count takes.
#ifndef TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_KERNEL_BODY_H_
#define TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_KERNEL_BODY_H_

#include <string>

#include "absl/status/status.h"
#include "tools/tpusim/command_line/program_flags.h"

namespace tpusim::tools {

// Prints the bodies of calls that `name`, a name or a glob, fits (kernels::IsNamed).
absl::Status PrintKernelBodies(const std::string& workload, const std::string& config,
                               const std::string& name, const ProgramFlags& flags, bool json);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_KERNEL_BODY_H_
