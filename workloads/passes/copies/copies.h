// Copies that in-place execution needs.
//
// A while loop overwrites the buffers of its initial values, an update (dynamic-update-slice,
// scatter) that of its operand, and a result may not share the buffer of an argument that
// the caller keeps. Where that would destroy a value that is still wanted, a copy goes in, as
// XLA's copy insertion puts one:
//   * what is overwritten is read by others too, and cannot be ordered behind all of them
//     (if it can, control edges say so, and there is no copy);
//   * what is overwritten is a constant, an argument that the caller did not donate, an
//     operand of a branch that is needed behind it, or a part of the result;
//   * a result is an argument itself and is not aliased to it;
//   * a result, or a loop's next value, cannot be made where it has to be (place_copies.h).
#ifndef TPUSIM_WORKLOADS_PASSES_COPIES_COPIES_H_
#define TPUSIM_WORKLOADS_PASSES_COPIES_COPIES_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> InsertCopies(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COPIES_COPIES_H_
