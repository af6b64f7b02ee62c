// Finds and makes reshapes that add or remove dimensions of extent one.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXTENTS_OF_ONE_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXTENTS_OF_ONE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Matches shapes that differ in extents of one only: for each dimension of `from` the
// dimension of `to` that it is, -1 for extents of one. nullopt: they differ otherwise.
std::optional<std::vector<int64_t>> MatchWithoutOnes(const Shape& from, const Shape& to);

// Returns `value` reshaped to these dimensions, or itself if it has them.
Instruction* Reshaped(Instruction* value, const std::vector<int64_t>& dims,
                      const Instruction* like);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXTENTS_OF_ONE_H_
