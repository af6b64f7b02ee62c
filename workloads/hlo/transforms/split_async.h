// Cuts an operation into a start and a done, which can run beside other operations.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ASYNC_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ASYNC_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Replaces `whole` by `start` and `done`, which take its users and control edges.
void ReplaceWithPair(Instruction* whole, Instruction* start, Instruction* done);

// Wraps `whole` in an async-start and its async-done; returns the start.
Instruction* WrapInAsync(Instruction* whole);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ASYNC_H_
