// Operations that are executed in two halves, a start and a done.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_ASYNC_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_ASYNC_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The start behind a done, past updates.
Instruction& StartOf(const Instruction& done);
// The done of a start, past updates; null: nothing waits for it.
Instruction* DoneOf(const Instruction& start);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_ASYNC_H_
