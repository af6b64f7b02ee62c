// Fusion: which instructions run as one kernel.
//
// Kernels are planned before they are made (plan.h): what may be together (legality.cc),
// what that would take (cost/candidate.h), and whether it is worth it. Then come the steps of
// steps.h.
//
// The room answers which kernels a program has; `Fuse` is its entry point. Nothing is merged in the
// module itself while it is decided: a plan can be changed and dropped without touching the
// program.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_FUSE_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_FUSE_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

struct FusionOptions {
  bool producers = true;  // values are computed in the kernels that use them
  bool results = true;    // kernels have several results
};

// Replaces groups of instructions by fusion instructions.
absl::StatusOr<bool> Fuse(hlo::Module& module, const PassContext& context,
                          const FusionOptions& options = {});

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_FUSE_H_
