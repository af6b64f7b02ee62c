// Impairments: chips and links that are slower than the chip file says, or dead.
//
// The room answers how stragglers and slow or dead links are stated, and what rates they leave;
// `Impairments` is its entry point. Impairments that begin during a step are not modelled. One that
// is stated twice is refused: the factors were multiplied before, and one of them may be a mistake.
#ifndef TPUSIM_SIM_IMPAIRMENTS_IMPAIRMENTS_H_
#define TPUSIM_SIM_IMPAIRMENTS_IMPAIRMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/config.h"
#include "models/isa/program.h"

namespace tpusim::sim {

// The smallest share of a clock or of a link's rate that can be simulated. Less is a part that does
// not work: the step would be the time of that part alone, and soon too long for the clock of the
// simulation. A link that carries nothing at all has the share 0.
inline constexpr double kSmallestShare = 1e-3;

// A straggler: the chip's clock runs at `factor` of its nominal rate. Its memory,
// DMA engine and links do not change.
struct SlowChip {
  int64_t chip = 0;
  double factor = 1;
};
// A link that reaches `factor` of its rate in one direction; 0 = dead.
struct DegradedLink {
  configs::Link link;
  double factor = 1;
};

struct Impairments {
  std::vector<SlowChip> chips;
  std::vector<DegradedLink> links;

  double ClockFactor(int64_t chip) const;
  double LinkFactor(const configs::Link& link) const;
};

// Returns the rate that transfers reach on this link.
BytesPerSecond LinkRate(const configs::Config& config, const Impairments& impairments,
                        const configs::Link& link);

// Error: two impairments of one chip or of one direction of a link, of which one may be a mistake.
absl::Status CheckNamedOnce(const Impairments& impairments);

// "chip=3:0.8" and "3:x+=0.5". Errors: another form, a chip or link that the slice
// does not have, a factor out of range.
absl::StatusOr<SlowChip> ParseSlowChip(const std::string& text, const configs::Config& config);
absl::StatusOr<DegradedLink> ParseDegradedLink(const std::string& text,
                                               const configs::Config& config);

// Error: the program sends over a dead link; names both.
absl::Status CheckRoutes(const isa::PodProgram& program, const Impairments& impairments);

// Degraded links that carry nothing in this program, a sentence each.
std::vector<std::string> WithoutEffect(const isa::PodProgram& program,
                                       const Impairments& impairments);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_IMPAIRMENTS_IMPAIRMENTS_H_
