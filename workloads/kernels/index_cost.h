// What a gather or scatter accesses of its operand.
#ifndef TPUSIM_WORKLOADS_KERNELS_INDEX_COST_H_
#define TPUSIM_WORKLOADS_KERNELS_INDEX_COST_H_

#include <cstdint>
#include <vector>

#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// What a gather takes from its operand, or a scatter puts there.
struct IndexedSlices {
  int64_t count = 0;             // one per index vector
  std::vector<int64_t> extents;  // of each, by dimension of the operand
  // By dimension of the operand: which one of the result (of an update) it is; -1: none.
  std::vector<int64_t> windows;
};
IndexedSlices SlicesOf(const hlo::Instruction& instruction);

struct IndexedAccess {
  int64_t count = 0;     // slices: one per index vector
  Bytes slice_bytes{0};  // that one transfer of a slice moves, in whole granules
  Bytes Total() const { return slice_bytes * count; }
};

IndexedAccess IndexedAccessOf(const hlo::Instruction& gather_or_scatter,
                              const target::Target& target);
// The combiner gives the update whatever was there: nothing has to be read.
bool ScatterOverwrites(const hlo::Instruction& scatter);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_INDEX_COST_H_
