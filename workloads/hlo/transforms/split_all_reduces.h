// Writes an all-reduce of several arrays as one of each.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ALL_REDUCES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ALL_REDUCES_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// For readers that know all-reduces of one array only, as the path from HLO to StableHLO does.
// Those whose result is not taken apart by get-tuple-elements stay.
void SplitAllReduces(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ALL_REDUCES_H_
