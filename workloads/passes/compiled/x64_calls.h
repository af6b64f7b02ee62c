// Calls that take 64-bit elements apart and join them.
#ifndef TPUSIM_WORKLOADS_PASSES_COMPILED_X64_CALLS_H_
#define TPUSIM_WORKLOADS_PASSES_COMPILED_X64_CALLS_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// Returns what a call of X64SplitLow, X64SplitHigh or X64Combine computes, elementwise: the parts of
// a complex number, the words of an integer. Null: it is another call, or of another type. Vectors
// of a TPU have elements of 32 bits, so that arguments and results of c64, u64 and s64 pass through
// these.
hlo::Instruction* X64Operation(const hlo::Instruction& call);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COMPILED_X64_CALLS_H_
