// Writes operations for which no later stage has a rule as operations for which there is one.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_COMPOSITES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_COMPOSITES_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Expands copies of tuples, batch normalisation and rng.
void ExpandComposites(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_COMPOSITES_H_
