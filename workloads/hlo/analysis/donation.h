// Arguments whose buffers become buffers of results.
//
// A step that updates its state in place needs it once, not twice. A caller who
// donates an argument lets the program write a result into it: which one the
// module says (an alias), or the first of the same shape (a donor), as XLA pairs
// them.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_DONATION_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_DONATION_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Leaves of tuples are counted from the first.
struct Donation {
  int64_t result_leaf = 0;
  int64_t parameter = 0;
  int64_t parameter_leaf = 0;
};

// Every result and every argument at most once; results in order.
std::vector<Donation> Donations(const Module& module);

// As if the caller donated every argument: all leaves become donors. Whether any was none.
bool DonateArguments(Module& module);

// Whether an instruction that is the last to read this operand may write its
// result over it: every element is read before, and only for, the element of the
// result in its place. With `sums`, a fusion may sum them up besides: a block of the operand is
// read when the block of the result in its place is written, and not again.
bool MayOverwrite(const Instruction& instruction, int64_t operand, bool sums = false);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_DONATION_H_
