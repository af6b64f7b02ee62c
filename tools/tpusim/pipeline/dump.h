// A program at every stage of the compiler, in a folder: `tpusim compile --dump DIR`.
#ifndef TPUSIM_TOOLS_TPUSIM_PIPELINE_DUMP_H_
#define TPUSIM_TOOLS_TPUSIM_PIPELINE_DUMP_H_

#include <string>

#include "absl/status/status.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "workloads/hlo/io/printer.h"

namespace tpusim::tools {

// Writes the folder, whole or not at all, with files whose names sort as the compiler works. It is
// made, or is there and empty; anything else is an error. Errors also: as Prepare.
absl::Status Dump(const std::string& workload, const std::string& config,
                  const ProgramFlags& flags, const hlo::PrintOptions& print,
                  const std::string& folder);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_PIPELINE_DUMP_H_
