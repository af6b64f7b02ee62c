// Writes all-reduces and reduce-scatters of several arrays as one of each.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_COMBINED_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_COMBINED_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// For readers that know those of one array only, as the path from HLO to StableHLO does. What is
// not taken apart by get-tuple-elements stays.
void SplitCombined(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_COMBINED_H_
