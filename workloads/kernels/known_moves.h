// Evaluates operations that move or combine whole numbers of arrays that are known.
#ifndef TPUSIM_WORKLOADS_KERNELS_KNOWN_MOVES_H_
#define TPUSIM_WORKLOADS_KERNELS_KNOWN_MOVES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::kernels {

// The elements of an array, in row-major order.
using WholeNumbers = std::vector<int64_t>;

// Calls with the place in `shape` of each of its elements in turn.
void ForEachPlace(const hlo::Shape& shape, const std::function<void(const WholeNumbers&)>& call);
// Returns the position of the element at a place.
size_t IndexOf(const hlo::Shape& shape, const WholeNumbers& place);

// The results, from what all operands hold. nullopt: another operation, a form of it that is not
// followed, or a computation with something that has no rule.
std::optional<std::vector<WholeNumbers>> Moved(const hlo::Instruction& instruction,
                                               const std::vector<WholeNumbers>& operands);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_KNOWN_MOVES_H_
