// Removes work that no machine need do, until nothing more is found: the rules below,
// reduces of reduces, values computed twice, carries of loops that never change or that
// nothing reads, dead values.
#ifndef TPUSIM_WORKLOADS_PASSES_SIMPLIFY_SIMPLIFY_H_
#define TPUSIM_WORKLOADS_PASSES_SIMPLIFY_SIMPLIFY_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Whether there was any of that.
absl::StatusOr<bool> Simplify(hlo::Module& module, const PassContext& context);

// Rewrites of one instruction: each family is a function that returns the value to use in
// its place, or null.
//
// Rules look at an instruction and its operands, which are simplified already, and make new
// instructions beside it; nothing is changed in place, so that other users of an operand are
// left alone. Every rule makes the program smaller by some measure (fewer operations, smaller
// arrays, dimension numbers instead of transposes), so that they end.
//
// Results are the same to the last bit but for what XLA's own simplifier takes to be equal:
// x + 0 is x although -0 + 0 is 0, and sums of sums are added in one go.
//
// x * 1, x + 0, select of a constant, comparisons with itself, conversions of conversions.
hlo::Instruction* SimplifyArithmetic(hlo::Instruction* i);
// Operations on scalar constants.
hlo::Instruction* FoldConstants(hlo::Instruction* i);
// Reshapes, transposes, broadcasts of each other; slices, pads, concatenations of all.
hlo::Instruction* SimplifyIndexing(hlo::Instruction* i);
// Elementwise operations on values broadcast from fewer elements happen before that.
hlo::Instruction* SinkBroadcast(hlo::Instruction* i);
// Reduces of reduces, of transposes, over dimensions of extent one.
hlo::Instruction* SimplifyReduce(hlo::Instruction* i);
// Scatters into zeros with one index per row.
hlo::Instruction* SimplifyScatter(hlo::Instruction* i);
// Transposes of operands and results of products become dimension numbers.
hlo::Instruction* SimplifyDot(hlo::Instruction* i);

// ---- For rules -------------------------------------------------------------

// The scalar constant that every element is, looked for through broadcasts and reshapes; or null.
const hlo::Instruction* ConstantElement(const hlo::Instruction& i);
// Every element is this number. Zero means +0; ask for -0.0 to mean the other.
bool IsAll(const hlo::Instruction& i, double value);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SIMPLIFY_SIMPLIFY_H_
