// Donated arguments that are stated beside the program: `--donate-argument`, `--keep-argument`.
//
// What `donate_argnums` of jax.jit would have written into the module: a donated argument lends its
// buffer to the first result of its type and of its sharding, as far as the program or the user
// says it, that no other argument is donated to.
#ifndef TPUSIM_WORKLOADS_SHARDING_STATED_STATED_DONATIONS_H_
#define TPUSIM_WORKLOADS_SHARDING_STATED_STATED_DONATIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tpusim::sharding {

struct NormalisedModule;

// Names of arguments as for StateArguments, with * for any text. Those that are donated already
// stay so. Errors: no argument of that name; no result for any of those that a name fits.
absl::Status StateDonated(const std::vector<std::string>& arguments, NormalisedModule& module);

// Arguments that are not donated, whatever the program says. Error: no argument of that name.
absl::Status StateKept(const std::vector<std::string>& arguments, NormalisedModule& module);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_STATED_STATED_DONATIONS_H_
