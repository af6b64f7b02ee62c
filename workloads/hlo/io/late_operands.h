// Asynchronous starts whose operands are given later, or read through their tuples.
#ifndef TPUSIM_WORKLOADS_HLO_IO_LATE_OPERANDS_H_
#define TPUSIM_WORKLOADS_HLO_IO_LATE_OPERANDS_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Begins asynchronous calls where their operands are known.
//
// Since libtpu 0.0.46 a call on SparseCores is a `call-start` or `custom-call-start` without
// operands, which makes a core ready, an update with the operands, and a done. The update becomes
// the start, in its place of the order, of the computation that the first one calls; the state that
// passes from one to the next goes. Calls of another form stay as they are.
void JoinLateOperands(Module& module);

// Has instructions that read an operand of an asynchronous start through its tuple read the operand
// itself. A start has one user then, its done.
void ReadOperandsThemselves(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_LATE_OPERANDS_H_
