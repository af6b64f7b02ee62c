// Pairs donated arguments with the results that take their buffers.
//
// A step that updates its state in place needs it once, not twice. A caller who donates an argument
// lets the program write a result into its buffer: the one that the module names (an alias), or the
// first of the same shape (a donor), as XLA pairs them.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_DONATION_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_DONATION_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// A leaf of the result and the leaf of a parameter whose buffer it takes.
struct Donation {
  int64_t result_leaf = 0;
  int64_t parameter = 0;
  int64_t parameter_leaf = 0;
};

// Returns every result and every argument at most once, results in order.
std::vector<Donation> Donations(const Module& module);

// Makes all leaves of all arguments donors; returns whether that changed anything.
bool DonateArguments(Module& module);

// Whether an instruction that is the last to read this operand may write its result over it: it
// reads every element before, and only for, the element of the result at the same place. A fusion
// may also reduce the operand: it reads a block when it writes the block of the result at the same
// place, and not again (in compiled modules, results of products that also collect sums lie over an
// operand that nothing reads afterwards: 10 of 11, `aliasing_operands`).
bool MayOverwrite(const Instruction& instruction, int64_t operand);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_DONATION_H_
