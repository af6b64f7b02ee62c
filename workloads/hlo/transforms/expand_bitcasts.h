// Expands bitcasts into the transposes and the reshape that they stand for.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BITCASTS_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BITCASTS_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// A bitcast reads the elements of its operand in the order of the operand's layout and
// has them in the order of its own: a transpose to the first order, a reshape, and a
// transpose from the second, each only where it changes something. Padding of tiles
// does not count: a bitcast between tilings keeps elements.
void ExpandBitcasts(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BITCASTS_H_
