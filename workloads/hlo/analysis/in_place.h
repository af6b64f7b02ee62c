// Finds the results of an instruction that are operands updated in place.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_IN_PLACE_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_IN_PLACE_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

struct InPlaceResult {
  int64_t leaf = 0;     // of the result's shape
  int64_t operand = 0;  // an array, whose buffer that leaf keeps
  // The dynamic-update-slice, scatter or custom call that changes it, and which of its operands is
  // written; a custom call writes all of the array itself.
  const Instruction* update = nullptr;
  int64_t update_operand = 0;
};

// The value that bitcasts of it rename: they share its buffer.
const Instruction* WithoutBitcasts(const Instruction* value);

// Returns them for dynamic-update-slice, scatter, fusions whose results these are, and custom calls
// that state it (output_operand_aliasing), by leaf; empty for all other instructions. A fusion
// updates nothing in place that it makes itself, nor where the result has another memory or size
// than the operand; of two results that update one operand, the first has its buffer.
std::vector<InPlaceResult> InPlaceResults(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_IN_PLACE_H_
