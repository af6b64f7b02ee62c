// What a program comes to on a slice: whether it fits into HBM, and how long a step takes.
//
// `fit` and `advise` ask this of many slices and variants, each in a child of its own, and say on
// stderr what comes.
#ifndef TPUSIM_TOOLS_TPUSIM_OUTCOMES_H_
#define TPUSIM_TOOLS_TPUSIM_OUTCOMES_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/tpusim/pipeline.h"

namespace tpusim::tools {

struct Outcome {
  Bytes peak{0}, usable{0};              // of HBM
  std::string too_much = {};             // why it does not fit; "" if it does
  std::optional<Picoseconds> step = {};  // of what was simulated
};

Outcome OutcomeOf(const results::Report& report);
// Compiles the program, and simulates what fits unless `machine` is null.
absl::StatusOr<Outcome> OutcomeOf(const std::string& workload, const std::string& config,
                                  const ProgramFlags& program, const MachineFlags* machine);
// What `make` makes of each number, in children; `text` is what there is to say behind a name.
std::vector<absl::StatusOr<Outcome>> OutcomesOf(
    const std::vector<std::string>& names,
    const std::function<absl::StatusOr<Outcome>(size_t)>& make,
    const std::function<std::string(const absl::StatusOr<Outcome>&)>& text,
    const ProgramFlags& flags);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_OUTCOMES_H_
