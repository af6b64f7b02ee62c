// Which results of an instruction are operands that it updates in place.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_IN_PLACE_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_IN_PLACE_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

struct InPlaceResult {
  int64_t leaf = 0;     // of the result's shape
  int64_t operand = 0;  // an array, whose buffer that leaf keeps
};

// The value that bitcasts of it rename: they share its buffer.
const Instruction* WithoutBitcasts(const Instruction* value);

// For dynamic-update-slice, scatter and fusions whose results they are, by leaf; empty
// for all others.
std::vector<InPlaceResult> InPlaceResults(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_IN_PLACE_H_
