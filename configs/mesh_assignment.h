// Assignment of the axes of a logical mesh to the axes of a torus, as JAX does it.
//
// Every logical axis gets a number of chips along each physical axis; the numbers of one logical
// axis multiply to its size, those of one physical axis to its length. Logical axes are served from
// the last (taken to communicate most) to the first. Where a logical axis can have whole physical
// axes, it gets as many as possible; otherwise axes are split, if the chip allows it, preferring
// whole axes first.
#ifndef TPUSIM_CONFIGS_MESH_ASSIGNMENT_H_
#define TPUSIM_CONFIGS_MESH_ASSIGNMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace tpusim::configs {

// assignment[physical axis][logical axis] = chips along that physical axis.
using MeshAssignment = std::vector<std::vector<int64_t>>;

// Whole physical axes only; nullopt when the mesh does not fit that way. Among as many physical
// axes those are preferred that come first, or with `last_first` the last one before the others.
std::optional<MeshAssignment> AssignWholeAxes(const std::vector<int64_t>& physical,
                                              const std::vector<int64_t>& logical,
                                              bool last_first);

// Physical axes may be split; nullopt when some factor does not divide.
std::optional<MeshAssignment> AssignSplitAxes(const std::vector<int64_t>& physical,
                                              const std::vector<int64_t>& logical);

// The physical coordinates at each position of the mesh (last logical axis
// minor). Within a physical axis, later logical axes are minor.
std::vector<std::vector<int64_t>> MeshCoordinates(const MeshAssignment& assignment,
                                                  const std::vector<int64_t>& logical);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_MESH_ASSIGNMENT_H_
