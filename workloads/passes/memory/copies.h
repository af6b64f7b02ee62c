// Copies that in-place execution needs.
//
// A while loop overwrites the buffers of its initial values, and a result may
// not share the buffer of an argument that the caller keeps. Where that would
// destroy a value that is still wanted, a copy goes in, as XLA's copy insertion
// puts one:
//   * a loop's initial value that the body replaces, and that is an argument the
//     caller did not donate or has another user;
//   * an argument that an update in place would change and that the caller did not
//     donate, or a constant;
//   * a result that is an argument itself and is not aliased to it.
#ifndef TPUSIM_WORKLOADS_PASSES_COPIES_H_
#define TPUSIM_WORKLOADS_PASSES_COPIES_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> InsertCopies(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COPIES_H_
