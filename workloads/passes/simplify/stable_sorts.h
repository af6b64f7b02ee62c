// Stable sorts, as XLA makes them (`stable-sort-expander`).
//
// Sorting networks do not keep the order of equal elements. So the position of an element is sorted
// along, as one more operand of 32-bit integers, and decides where the comparator finds neither of
// two elements before the other. A sort that has positions among its operands needs no more.
#ifndef TPUSIM_WORKLOADS_PASSES_SIMPLIFY_STABLE_SORTS_H_
#define TPUSIM_WORKLOADS_PASSES_SIMPLIFY_STABLE_SORTS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> ExpandStableSorts(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SIMPLIFY_STABLE_SORTS_H_
