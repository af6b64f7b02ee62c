// Expands stable sorts as XLA does (`stable-sort-expander`).
//
// Sorting networks do not keep the order of equal elements. So the position of each element becomes
// one more operand of 32-bit integers, which decides where the comparator orders neither of two
// elements before the other. A sort that has positions among its operands needs no more.
#ifndef TPUSIM_WORKLOADS_PASSES_SIMPLIFY_STABLE_SORTS_H_
#define TPUSIM_WORKLOADS_PASSES_SIMPLIFY_STABLE_SORTS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> ExpandStableSorts(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SIMPLIFY_STABLE_SORTS_H_
