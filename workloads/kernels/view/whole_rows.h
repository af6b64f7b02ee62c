// Rows that a block holds whole.
//
// A softmax subtracts from a row its own maximum. One kernel can reduce a row and spread the
// result over the row again if every block holds whole rows. The TPU compiler makes such kernels
// (it calls reduction and broadcast a reduce-window then) of arrays with at least three
// dimensions, of which one is reduced, if nothing comes between reduction and broadcast, and up
// to a row length, which is less behind the product that makes the rows (compiler.whole_row_*).
#ifndef TPUSIM_WORKLOADS_KERNELS_VIEW_WHOLE_ROWS_H_
#define TPUSIM_WORKLOADS_KERNELS_VIEW_WHOLE_ROWS_H_

#include <cstdint>
#include <vector>

#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// The reduction whose result `instruction`, a broadcast, spreads over the rows that were reduced;
// null if it is none, or the rows are too long.
const hlo::Instruction* ReductionSpreadBy(const hlo::Instruction& instruction,
                                          const configs::Policy& policy);

// Reductions among `members` of a kernel whose results other members spread over rows.
std::vector<const hlo::Instruction*> ReductionsSpreadIn(
    const std::vector<const hlo::Instruction*>& members, const configs::Policy& policy);

// Returns the operand of the dot that has the dimension which `reduction` of its result, or of what
// follows the result element by element, goes over: 0 or 1; -1 if it is a batch dimension, the
// dimensions are not those of the dot, or the rows are too long to be kept behind a product.
int OperandAlongRows(const hlo::Instruction& dot, const hlo::Instruction& reduction,
                     const configs::Policy& policy);

// Vector registers and bytes of 32-bit elements of the smallest block with whole rows.
int64_t RowRegisters(const target::Target& target, const hlo::Instruction& reduction);
Bytes RowBytes(const target::Target& target, const hlo::Instruction& reduction);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_VIEW_WHOLE_ROWS_H_
