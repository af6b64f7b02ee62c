// Sizes of the groups of a ragged operation, where the user stated them: rows per
// group that a ragged dot holds, or per member of the group of a ragged
// all-to-all. They are data, the program itself does not say them.
#ifndef TPUSIM_WORKLOADS_HLO_IR_RAGGED_H_
#define TPUSIM_WORKLOADS_HLO_IR_RAGGED_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// nullopt: nothing is stated. Written none: likewise.
std::optional<std::vector<int64_t>> RaggedSizes(const Instruction& ragged);
void SetRaggedSizes(Instruction* ragged, const std::vector<int64_t>& sizes);

// Rows that a device sends by a ragged all-to-all: the sum of what is stated; else all that it
// has, but no more than its result holds, as every device receives what it sends.
int64_t RowsSent(const Instruction& ragged_all_to_all);

// Returns the bytes of one row.
Bytes RowBytes(const Instruction& ragged_all_to_all);

// The dimension of a ragged dot's left side that falls into groups.
int64_t RaggedDimension(const Instruction& dot);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_RAGGED_H_
