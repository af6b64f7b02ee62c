// Recognises indices that only count: x[jnp.arange(B), i], row b's element i[b].
//
// JAX writes it as a gather whose index vectors hold (b, i[b]), a lookup anywhere in x as far
// as the op says. What it says is enough to see that the first component is the position
// itself, and that makes b a batch dimension: of the operand, of the indices and of the
// result, split over the mesh without a word between devices. The same for a scatter.
//
// This comes after propagation. JAX's compiler, too, propagates shardings through a lookup
// anywhere in x, and only its partitioner sees positions: shardings stay those of JAX.
#ifndef TPUSIM_WORKLOADS_SHARDING_PROPAGATION_BATCH_INDICES_H_
#define TPUSIM_WORKLOADS_SHARDING_PROPAGATION_BATCH_INDICES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::sharding {

// The dimension along which the integers of an array count 0, 1, 2, ..., the same in all
// other dimensions, as far as its ops show. Loops and calls that pass them unchanged are looked
// through: the layers of a scan share what is made before it.
std::optional<int64_t> CountedDimension(const hlo::Instruction& value,
                                        const hlo::CallerOf& caller_of);

// Turns indices of gathers and scatters that count along a whole dimension of the operand
// into batching dimensions. `made` hears of every new array of indices and of the indices
// that it is a part of.
void FindBatchIndices(hlo::Computation* computation, const hlo::CallerOf& caller_of,
                      const std::function<void(const hlo::Instruction* part,
                                               const hlo::Instruction* whole)>& made = {});

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_PROPAGATION_BATCH_INDICES_H_
