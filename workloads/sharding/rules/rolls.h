// Recognises an array that is read round and round: jnp.roll, or padding that wraps.
//
// JAX writes concatenate(x[a:], x[:a]). Taken apart, neither slice is a good
// citizen of the mesh: their sizes do not divide, and each has to be moved back to
// where the other one ended. Taken together, every device needs its own block and
// a few elements of its neighbours.
#ifndef TPUSIM_WORKLOADS_SHARDING_RULES_ROLLS_H_
#define TPUSIM_WORKLOADS_SHARDING_RULES_ROLLS_H_

#include <cstdint>
#include <functional>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::sharding {

// A custom-call that lives from propagation to partitioning only.
inline constexpr char kRollTarget[] = "tpusim.roll";

// result[..., j, ...] = operand[..., (j + first) mod size, ...]
struct Roll {
  int64_t dim = 0, first = 0;
};
Roll GetRoll(const hlo::Instruction& roll);

// Puts a roll in place of every concatenation that is one. `keep` says of which
// instructions something is known elsewhere: they stay what they are.
void FindRolls(hlo::Computation* computation,
               const std::function<bool(const hlo::Instruction*)>& keep);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_RULES_ROLLS_H_
