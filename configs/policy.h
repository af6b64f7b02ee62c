// The TPU compiler's choices where costs do not decide.
//
// Limits, thresholds and choices that were read off programs it compiled, or off its flags. Each is
// a row of policy_rows.inc, and has its value in configs/compilers/NAME.json, with the program that
// told, the nearest values that were seen to behave otherwise, and the compiler's flag if it has
// one. `tpusim configs CHIP --compiler` prints them all, --set compiler.NAME=VALUE and --xla-flags
// override them. A file of a later version names the one that it is `like` and gives what differs;
// --compiler, or the version that compiled the module, says which one holds. A pass asks
// target::Target::policy() and has no such number of its own: what an operation costs is in
// instructions.h, limits of effort are the passes' own matter.
#ifndef TPUSIM_CONFIGS_POLICY_H_
#define TPUSIM_CONFIGS_POLICY_H_

#include <cstdint>
#include <string>

#include "configs/units.h"

namespace tpusim::configs {

struct Policy {
  // The file that the values are from, "libtpu-0.0.42".
  std::string compiler;
  // The chip whose compiled programs say which collective algorithms are chosen
  // (workloads/collectives/choice_table.h); "": the fastest are.
  std::string like;

#define POLICY(type, name, unit, range, description) type name{};
#include "configs/policy_rows.inc"
#undef POLICY
};

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_POLICY_H_
