// Removes what costs nothing on a real machine: identity reshapes, converts and
// copies, elements of tuples just made, values computed twice, dead values.
#ifndef TPUSIM_WORKLOADS_PASSES_SIMPLIFY_H_
#define TPUSIM_WORKLOADS_PASSES_SIMPLIFY_H_

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

absl::Status Simplify(hlo::Module& module, const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SIMPLIFY_H_
