// In which sharding a matrix product would best have its operands.
//
// Two products that want a value in one sharding share the collective that makes it; a product that
// wants it otherwise has its own (passes/collectives/windowed_einsum.h). XLA asks this when it
// propagates shardings from users: dimensions that become ones of the result are split as these
// are, and contracted ones as those of the other operand, as far as an axis is still free.
#ifndef TPUSIM_WORKLOADS_SPMD_WANTED_AXES_H_
#define TPUSIM_WORKLOADS_SPMD_WANTED_AXES_H_

#include <string>

#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::spmd {

// Returns the value of annotations::kWantedAxes for a dot, such as "x;y|;y". Shardings are those of
// the whole program.
std::string WantedAxes(const hlo::Instruction& dot, const sharding::Sharding& lhs,
                       const sharding::Sharding& rhs, const sharding::Sharding& result,
                       const sharding::Mesh& mesh);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_WANTED_AXES_H_
