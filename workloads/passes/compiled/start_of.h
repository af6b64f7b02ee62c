// A collective that is written inside of something else, as one that runs beside the main stream.
#ifndef TPUSIM_WORKLOADS_PASSES_COMPILED_START_OF_H_
#define TPUSIM_WORKLOADS_PASSES_COMPILED_START_OF_H_

#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// An async-start in `computation` of a collective like `collective`, of `operands`, that makes
// `result`.
hlo::Instruction* StartOf(const hlo::Instruction& collective,
                          const std::vector<hlo::Instruction*>& operands, const hlo::Shape& result,
                          hlo::Computation* computation);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COMPILED_START_OF_H_
