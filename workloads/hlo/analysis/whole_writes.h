// Stacks that a loop writes from end to end.
//
// What a scan stacks (the ys of jax.lax.scan, what it keeps for its gradient) is an element of the
// loop's carry that iteration i updates in row i. When the last iteration is over, nothing is left
// of what was there before the loop.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_WHOLE_WRITES_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_WHOLE_WRITES_H_

#include <cstdint>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Whether a loop writes all of element `index` of its carry and reads none of it: the body does
// nothing with it but one dynamic-update-slice, of a row that the loop's counter itself names. (As
// the TPU compiler has it: stacks that are written backwards, such as gradients of weights, it does
// not recognise.)
bool WritesWhole(const Instruction& loop, int64_t index);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_WHOLE_WRITES_H_
