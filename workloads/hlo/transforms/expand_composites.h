// Writes operations for which no later stage has a rule as operations for which there is one.
//
// The room answers how a module is rewritten where no machine and no cost plays a part; each header
// has one transform, and passes call those that they need. `ExpandComposites` is its entry point
// for a module that was imported.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_COMPOSITES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_COMPOSITES_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Expands copies of tuples, batch normalisation, rng, and bitcast-converts that change the width, and
// joins asynchronous compute with its result.
void ExpandComposites(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_COMPOSITES_H_
