// Computes values once that are computed twice.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_COMMON_SUBEXPRESSIONS_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_COMMON_SUBEXPRESSIONS_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Equal operations with equal operands and attributes; of operations that call something,
// reduces and the like whose small computations say the same.
// Left alone: collectives (one gather in place of two keeps its result for as long as both
// are wanted), random numbers, custom calls, loops and branches, whatever has side effects or
// control edges, and optimization barriers with all that comes after them: what is computed
// again behind one is meant to be.
bool EliminateCommonSubexpressions(Computation* computation);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_COMMON_SUBEXPRESSIONS_H_
