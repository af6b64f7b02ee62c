// Reshapes that put in or take out dimensions of extent one.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXTENTS_OF_ONE_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXTENTS_OF_ONE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// For shapes that differ in extents of one only: by dimension of `from` the dimension of `to`
// that it is, -1 for those of extent one. nullopt: they differ in more.
std::optional<std::vector<int64_t>> MatchWithoutOnes(const Shape& from, const Shape& to);

// `value` with these dimensions; itself if it has them.
Instruction* Reshaped(Instruction* value, const std::vector<int64_t>& dims,
                      const Instruction* like);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXTENTS_OF_ONE_H_
