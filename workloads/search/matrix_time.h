// The least time of a matmul on the arrays of a device.
#ifndef TPUSIM_WORKLOADS_SEARCH_MATRIX_TIME_H_
#define TPUSIM_WORKLOADS_SEARCH_MATRIX_TIME_H_

#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::search {

// Seconds of one execution of a dot or convolution: its arithmetic in the passes of its format, at
// the rate that the arrays sustain (timing::TimeBlock), with no tile left unfilled. What the arrays
// have no rule for counts as nothing.
double MatrixSeconds(const hlo::Instruction& product, const target::Target& target);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_MATRIX_TIME_H_
