// A copy of a tuple is a tuple of copies.
//
// XLA lets one instruction copy all arrays of a tuple. Everything that asks what an instruction
// moves, where its result lies or how it is sharded asks of one array, so such copies are taken
// apart before anything else is done to a module.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_TUPLE_COPIES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_TUPLE_COPIES_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// In every computation; in one that has an order the copies come where the one was.
void SplitTupleCopies(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_TUPLE_COPIES_H_
