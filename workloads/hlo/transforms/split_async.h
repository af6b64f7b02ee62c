// An operation cut into two halves, to run beside others.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ASYNC_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ASYNC_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// `start` and `done`, made for it, take the place of `whole`: its users, its control edges.
void ReplaceWithPair(Instruction* whole, Instruction* start, Instruction* done);

// Wraps `whole` in an async-start and its async-done; returns the start.
Instruction* WrapInAsync(Instruction* whole);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_SPLIT_ASYNC_H_
