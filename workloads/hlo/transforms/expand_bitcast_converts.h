// Expands bitcast-converts between types of different widths into shifts, as XLA does.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BITCAST_CONVERTS_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BITCAST_CONVERTS_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// A wide element is shifted right once for each narrow one of a new last dimension; narrow elements
// are shifted left and united along it. So the new dimension may lie anywhere in memory.
void ExpandBitcastConverts(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BITCAST_CONVERTS_H_
