// Replaces a copy of a tuple by a tuple of copies.
//
// XLA lets one instruction copy all arrays of a tuple. Everything that asks what an instruction
// moves, where its result lies or how it is sharded asks of one array, so such copies are taken
// apart before anything else is done to a module.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_TUPLE_COPIES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_TUPLE_COPIES_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Does so in every computation; in a schedule the copies take the position of the one.
void SplitTupleCopies(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_TUPLE_COPIES_H_
