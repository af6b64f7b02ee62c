// Simplifies a module until nothing changes any more: algebraic rules (below), reduces of reduces,
// common subexpressions, carries of loops that never change or that nothing reads, dead values.
//
// The room answers what computes nothing new, whatever the machine; `Simplify` is its entry point,
// and each family of rules has a file.
#ifndef TPUSIM_WORKLOADS_PASSES_SIMPLIFY_SIMPLIFY_H_
#define TPUSIM_WORKLOADS_PASSES_SIMPLIFY_SIMPLIFY_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Returns whether anything changed.
absl::StatusOr<bool> Simplify(hlo::Module& module, const PassContext& context);

// ---- Rules: each returns the value that replaces an instruction, or null ---
//
// A rule reads an instruction and its operands, which are simplified already, and adds new
// instructions; it changes nothing in place, so that other users of an operand are unaffected.
// Every rule makes the program smaller by some measure (fewer operations, smaller arrays, dimension
// numbers instead of transposes), so that they end.
//
// Results are equal to the last bit, except where XLA's own simplifier assumes equality: x + 0 is x
// although -0 + 0 is 0, and sums of sums are added at once.
//
// Simplifies x * 1, x + 0, select of a constant, comparisons with itself, conversions of
// conversions.
hlo::Instruction* SimplifyArithmetic(hlo::Instruction* i);
// Evaluates operations on scalar constants.
hlo::Instruction* FoldConstants(hlo::Instruction* i);
// Merges reshapes, transposes and broadcasts; simplifies slices, pads and concatenations.
hlo::Instruction* SimplifyIndexing(hlo::Instruction* i);
// Moves elementwise operations in front of the broadcasts of their operands.
hlo::Instruction* SinkBroadcast(hlo::Instruction* i);
// Simplifies reduces of reduces, of transposes, and over dimensions of extent one.
hlo::Instruction* SimplifyReduce(hlo::Instruction* i);
// Replaces scatters into zeros with one index per row.
hlo::Instruction* SimplifyScatter(hlo::Instruction* i);
// Turns transposes of operands and results of dots into dimension numbers, and merges dimensions of
// an operand for a reshape of the result.
hlo::Instruction* SimplifyDot(hlo::Instruction* i);

// ---- For rules -------------------------------------------------------------

// The scalar constant that every element is, found through broadcasts and reshapes; or null.
const hlo::Instruction* ConstantElement(const hlo::Instruction& i);
// Whether every element is this number. 0.0 is +0, -0.0 is -0.
bool IsAll(const hlo::Instruction& i, double value);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SIMPLIFY_SIMPLIFY_H_
