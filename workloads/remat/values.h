// Follows values through manual regions, branches and calls of the program as JAX exported it.
//
// Inside of one computation, hlo::Underlying finds what computes a value. Here are the boundaries
// between computations: a shard_map is a call whose operands Shardy's markers cut and put together,
// and a branch reads what its conditional was given.
#ifndef TPUSIM_WORKLOADS_REMAT_VALUES_H_
#define TPUSIM_WORKLOADS_REMAT_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::remat {

// Maps each computation to the loop, conditional or call that runs it; GiveOwnBodies() sees to it
// that there is one. Computations that are applied to elements are not listed.
using Callers = std::unordered_map<const hlo::Computation*, hlo::Instruction*>;
Callers CallersOf(const hlo::Module& module);

// Returns the computation around `computation` once manual regions and branches are taken to be in
// line: the body or condition of a loop, a computation that is applied to elements, or the entry.
const hlo::Computation* HomeOf(const hlo::Computation* computation, const Callers& callers);
// Finds what computes a value as hlo::Underlying does, and also through the boundaries of manual
// regions and into branches.
hlo::Instruction* Resolved(hlo::Instruction* value, const Callers& callers);

// A value at the boundary of a manual region, where Shardy's marker makes a shard of a whole array
// or the whole array of shards.
struct RegionBoundary {
  bool inwards = false;
  hlo::Instruction* value = nullptr;  // on the other side
  std::string sharding, axes;         // the in_shardings or out_shardings, and the manual axes
  bool SameSharding(const RegionBoundary& other) const {
    return sharding == other.sharding && axes == other.axes;
  }
};
std::optional<RegionBoundary> BoundaryOf(const hlo::Instruction& value);

// Copies a computation that several instructions run for each of them.
void GiveOwnBodies(hlo::Module& module);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_VALUES_H_
