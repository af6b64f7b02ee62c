// Writes all-reduces and reduce-scatters of several arrays as one of each.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_COMBINED_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_COMBINED_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The path from HLO to StableHLO reads collectives of one array only. Collectives whose results are
// not taken apart by get-tuple-elements stay.
void SplitCombined(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_COMBINED_H_
