// The ways to lay a slice upon itself: axes exchanged, axes turned round, chips moved
// along the axes that close.
//
// A Turn maps chips to chips and directions to directions so that neighbours stay
// neighbours. Around a given chip a three-dimensional torus of equal axes has 48 of
// them, a two-dimensional one 8.
#ifndef TPUSIM_SIM_SYMMETRY_TURNS_H_
#define TPUSIM_SIM_SYMMETRY_TURNS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "configs/topology.h"

namespace tpusim::sim {

struct Turn {
  std::vector<int64_t> chips;                                       // by chip
  std::array<configs::Direction, configs::kDirections> directions;  // by direction

  configs::Link Of(const configs::Link& link) const {
    return {chips[link.chip], directions[static_cast<int>(link.direction)]};
  }
};

// Returns all turns of a single slice that map `from` to `to`, first the one that only moves.
std::vector<Turn> TurnsOf(const configs::Topology& topology, int64_t from, int64_t to);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_TURNS_H_
