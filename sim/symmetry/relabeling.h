// Programs that are the same but for the names of their routes and flags.
//
// Laid upon itself (turns.h), a slice sends over other routes: what went towards x+ goes
// towards y-. A device and its image behave alike if the program of the one, with every
// route replaced by its image, is the program of the other under some renaming of flags,
// tokens and streams. Instructions that follow each other in the program and take no time
// (starts, sends, signals) or only wait (done, wait) may change places.
#ifndef TPUSIM_SIM_SYMMETRY_RELABELING_H_
#define TPUSIM_SIM_SYMMETRY_RELABELING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "models/isa/program.h"

namespace tpusim::sim {

// Returns whether a route can be the image of another.
using RouteImage = std::function<bool(int32_t route, int32_t image)>;

struct Relabeling {
  // Images by number; -1: not used.
  std::vector<int32_t> routes, flags;

  bool operator==(const Relabeling&) const = default;
  auto operator<=>(const Relabeling&) const = default;
  bool IsIdentity() const;
  Relabeling Inverse() const;
  // First this, then `other`.
  Relabeling Then(const Relabeling& other) const;
};

// Finds a relabeling that turns each program into its image. `programs` are pairs of a program and
// its image. Nullopt: none was found; if instructions may change places the first that fits is
// taken.
std::optional<Relabeling> FindRelabeling(const isa::PodProgram& program,
                                         const std::vector<std::pair<int32_t, int32_t>>& programs,
                                         const RouteImage& is_image);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_RELABELING_H_
