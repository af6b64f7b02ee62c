// Products with a collective that could become windowed einsums.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_MATCH_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_MATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

struct WindowedEinsum {
  enum class Form { kGatherContracted, kGatherFree, kScatter };
  Form form = Form::kScatter;
  hlo::Instruction* dot = nullptr;
  hlo::Instruction* collective = nullptr;  // the all-gather or the reduce-scatter
  // The dimension in question: of which operand, its number there, and in the operand that is
  // gathered along a contracted dimension the number of the same in the other one; else its number
  // in the result.
  size_t operand = 0;
  int64_t dim = 0;
  int64_t other_dim = 0;
};

// All forms that `dot` has, gathers before scatters. A product of activations, split over one axis,
// by weights that another axis shares has both: only one can be windowed.
std::vector<WindowedEinsum> MatchWindowedEinsums(hlo::Instruction* dot);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_WINDOWED_EINSUM_MATCH_H_
