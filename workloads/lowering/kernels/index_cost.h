// What a gather or scatter touches of its operand.
#ifndef TPUSIM_WORKLOADS_LOWERING_KERNELS_INDEX_COST_H_
#define TPUSIM_WORKLOADS_LOWERING_KERNELS_INDEX_COST_H_

#include "configs/units.h"
#include "workloads/hlo/ir.h"
#include "workloads/passes/target.h"

namespace tpusim::lowering {

struct IndexedAccess {
  int64_t count = 0;     // slices: one per index vector
  Bytes slice_bytes{0};  // that one transfer of a slice moves, in whole granules
  Bytes Total() const { return slice_bytes * count; }
};

IndexedAccess AccessOfGather(const hlo::Instruction& gather, const passes::Target& target);
IndexedAccess AccessOfScatter(const hlo::Instruction& scatter, const passes::Target& target);
// The combiner gives the update whatever was there: nothing has to be read.
bool ScatterOverwrites(const hlo::Instruction& scatter);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_KERNELS_INDEX_COST_H_
