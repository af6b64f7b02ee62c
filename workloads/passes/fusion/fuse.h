// Fusion: which instructions run as one kernel.
//
// Working from users to operands, a producer joins the kernel of its users when
// all of them are in one kernel, which keeps every kernel single-rooted and the
// graph acyclic. What may join depends on what the kernel is built around:
//
//   loop      elementwise chains with broadcasts, slices, converts, transposes
//   reduce    a reduction and the elementwise work that feeds it
//   dot       one dot; elementwise users of its result (epilogue); and on the
//             way into it converts, slices, transposes and light elementwise work
//   update    a dynamic-update-slice, in place, and what feeds its update
//
// An elementwise chain that hangs on a dot goes to that dot, not into the next
// one: it would be recomputed for every window that the next dot fetches again.
// Constants, iotas and broadcasts of scalars are copied into every kernel that
// uses them, and so are conversions to a wider type that several kernels read: they
// would write, and each of those read, more than there was. Scalar arithmetic belongs to the scalar
// core and stays outside.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSE_H_
#define TPUSIM_WORKLOADS_PASSES_FUSE_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Replaces groups of two or more instructions by fusion instructions
// (kOutput around a dot, kInput around a reduce, else kLoop).
absl::StatusOr<bool> Fuse(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_FUSE_H_
