// What a gather or scatter accesses of its operand.
#ifndef TPUSIM_WORKLOADS_KERNELS_INDEX_COST_H_
#define TPUSIM_WORKLOADS_KERNELS_INDEX_COST_H_

#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

struct IndexedAccess {
  int64_t count = 0;     // slices: one per index vector
  Bytes slice_bytes{0};  // that one transfer of a slice moves, in whole granules
  Bytes Total() const { return slice_bytes * count; }
};

IndexedAccess AccessOfGather(const hlo::Instruction& gather, const target::Target& target);
IndexedAccess AccessOfScatter(const hlo::Instruction& scatter, const target::Target& target);
// The combiner gives the update whatever was there: nothing has to be read.
bool ScatterOverwrites(const hlo::Instruction& scatter);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_INDEX_COST_H_
