// The longest step that is simulated.
//
// The clock of a simulation counts picoseconds in 64 bits, which are 106 days. A rate of a byte per
// second or a loop of 10^12 passes lasts longer: such a run ends with an error that says what
// takes so long, and which parameter would change it.
#ifndef TPUSIM_SIM_LONGEST_STEP_H_
#define TPUSIM_SIM_LONGEST_STEP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "configs/config.h"
#include "configs/units.h"
#include "models/flow/network.h"
#include "models/isa/program.h"

namespace tpusim::sim {

// Far from the end of the clock: what is pending then ends before it.
inline constexpr int64_t kLongestDays = 30;
inline constexpr Picoseconds kLongestStep(kLongestDays * 24 * 3600 * int64_t{1'000'000'000'000});

// Passes of a loop that are known to come, or periods of several.
struct PassesAhead {
  int64_t passes = 0;
  Picoseconds period;
};

// Returns the user's error of a simulation that has come to kLongestStep, that would have, by
// passes of a loop that are known, or in which something never ends.
absl::Status TooLong(const std::optional<PassesAhead>& ahead, const flow::Network& network,
                     const configs::Config& config, const isa::PodProgram& program);

// The parameter of configs/chip_schema.cc that says the rate of a resource of the pod, by the
// resource's name; "" if none does.
std::string ParameterOf(const std::string& resource);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_LONGEST_STEP_H_
