// A module as any XLA backend can compile it.
//
// What the passes leave speaks of a TPU: fusions, operations in two halves, bitcasts between
// layouts, memory spaces, memory that nothing has written, an order of execution. The
// executable form computes the same values with none of these, so that a run on CPU devices
// says whether the passes are right.
#ifndef TPUSIM_WORKLOADS_COMPILER_EXECUTABLE_FORM_H_
#define TPUSIM_WORKLOADS_COMPILER_EXECUTABLE_FORM_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::compiler {

// In place. Optimization barriers stay. Memory with arbitrary content holds NaN (integers: a
// large number), which spoils every result that depends on it.
void MakeExecutable(hlo::Module& module);

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_EXECUTABLE_FORM_H_
