// In which shape the TPU compiler multiplies by a weight.
//
// A product whose result is reshaped at once, such as queries into heads, multiplies by the
// reshaped weight in the TPU compiler: the simplifier moves the reshape from the result, which is
// large, to the weight, before the program is partitioned. A weight that one product has in its own
// shape and another one reshaped is two values then. Two all-gathers serve them, and neither counts
// as a second use of the other one's.
//
// Found in its modules of a decoder whose weights are [out, in] (Qwen3-8B, v6e 2x4): in the
// backward pass those of queries, keys, values and attention's output are gathered twice, as
// [32,128,1,512] and as [4096,512], each beside its product; those of the MLP, whose products
// nothing reshapes, once for both. Behind an optimization barrier (layers that are computed again
// and are no scan) all are gathered once and none beside its product, so the reshape stays where it
// is: a module of four such layers has 137 permutes a layer.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_OPERAND_SHAPE_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_OPERAND_SHAPE_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// Whether `dot` multiplies by `operand` reshaped: all that reads its result is a reshape that
// splits a dimension which comes from there, and no optimization barrier is before it.
bool MultipliesReshaped(const hlo::Instruction& dot, const hlo::Instruction& operand);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_OPERAND_SHAPE_H_
