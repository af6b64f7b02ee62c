// Removes work that no machine need do, until nothing more is found: the rules of rules.h,
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

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SIMPLIFY_SIMPLIFY_H_
