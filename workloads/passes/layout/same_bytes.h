// Which operations only give bytes in memory another name.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_SAME_BYTES_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_SAME_BYTES_H_

#include <vector>

#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/layout/order_classes.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// Do the tiles of both arrays lie in memory alike, if elements do?
bool SameTiling(const hlo::Shape& from, const hlo::Shape& to, const target::Target& target);

// A reshape takes runs of dimensions to runs of dimensions: the shortest ones with equal
// products, [4,9,3] to [4,27] is {0}{1,2} to {0}{1}. Extents of one are in none.
struct ReshapeRun {
  Dims from, to;
};
std::vector<ReshapeRun> ReshapeRuns(const Dims& from, const Dims& to);

// The order of a reshape's result in which no element moves, or empty if there is none: a run
// was torn apart. Extents of one come last.
Dims OrderThroughReshape(const Dims& from, const Dims& to, const Dims& order);

// Do operand and result of a reshape or transpose lie in memory alike?
bool MovesNothing(const hlo::Instruction& instruction, const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_SAME_BYTES_H_
