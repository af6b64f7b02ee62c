// get-tuple-element(tuple(...), i) is operand i.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_FORWARD_TUPLES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_FORWARD_TUPLES_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Users of such elements use the operand instead. Inlined bodies are full of
// them. What has lost its users stays where it is.
void ForwardTuples(Computation& computation);
// In every computation, and without what is dead then, computations included.
void ForwardAllTuples(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_FORWARD_TUPLES_H_
