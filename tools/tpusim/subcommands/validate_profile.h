// tpusim validate W.pb --xplane PROFILE: a user's own profile beside the simulation.
#ifndef TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_VALIDATE_PROFILE_H_
#define TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_VALIDATE_PROFILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "tools/tpusim/command_line/program_flags.h"

namespace tpusim::tools {

struct ProfileFlags {
  std::string profile;           // a file of XProf or a folder
  std::string workload, config;  // "" = the slice that the workload names
  std::string report;            // JSON; "" = the table
  size_t top = 0;                // rows; 0 = what one screen has
};

// Simulates the program and prints both, or writes them.
absl::Status ValidateProfile(const ProfileFlags& flags, const ProgramFlags& program,
                             const MachineFlags& machine);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SUBCOMMANDS_VALIDATE_PROFILE_H_
