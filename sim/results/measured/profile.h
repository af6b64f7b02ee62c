// A profile that XProf took of a real TPU: the operations that its devices executed.
//
// It is what jax.profiler.trace() leaves in a folder: one .xplane.pb per host (xplane.proto). Of
// every plane "/device:TPU:N" two lines are read: "XLA Modules", the executions of programs, and
// "XLA Ops", what the main stream did, loops around their bodies. An operation counts with the time
// in which nothing inside of it ran, so that the operations of an execution add up to what was busy
// of it. All numbers are means over the executions of one program and over devices. An execution
// that the profile cut is known by its operations: it has fewer than the others.
#ifndef TPUSIM_SIM_RESULTS_MEASURED_PROFILE_H_
#define TPUSIM_SIM_RESULTS_MEASURED_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"

namespace tpusim::results {

struct ProfiledOp {
  std::string name;                     // of the instruction, "fusion.12"
  std::string category, scope, source;  // XProf's hlo_category, the op_name path, "file.py:12"
  double count = 0;                     // per execution of the program
  Picoseconds time{0};                  // likewise, without what ran inside
};

struct Profile {
  std::string module;                      // "jit_step"
  int64_t devices = 0, executions = 0;     // those that were read, of all devices
  Picoseconds step{0};                     // mean of the executions
  Picoseconds shortest{0}, longest{0};     // of them
  Picoseconds gap{0};                      // mean of the device's time between two of them
  std::vector<ProfiledOp> ops;             // longest first
  std::vector<std::string> other_modules;  // what else was executed, by name

  Picoseconds Idle() const;  // of an execution, in no operation
};

// `path` is a file or a folder, of which the newest profile inside is read. `module` names the
// program; if the profile has none of that name, it is the one that took most time. Errors say
// what is missing: no file, not a profile, no TPU, no operations.
absl::StatusOr<Profile> ReadProfile(const std::string& path, const std::string& module);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_MEASURED_PROFILE_H_
