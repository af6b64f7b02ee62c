// Asynchronous calls that get their operands after they have begun.
#ifndef TPUSIM_WORKLOADS_HLO_IO_LATE_OPERANDS_H_
#define TPUSIM_WORKLOADS_HLO_IO_LATE_OPERANDS_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Begins asynchronous calls where their operands are known.
//
// Since libtpu 0.0.50 a call on SparseCores is a `custom-call-start` without operands, which makes
// a core ready, a `custom-call-update` with the operands, and a `custom-call-done`. The update
// becomes the start, in its place of the order, of the computation that the first one calls; the
// state that passes from one to the next goes. Calls of another form stay as they are.
void JoinLateOperands(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_LATE_OPERANDS_H_
