// Fusion: which instructions run as one kernel.
//
// Kernels are planned before they are made (plan.h): what may be together (legality.h),
// what that would take (price.h), and whether it is worth it. Producers go into the
// kernels that use them (inline_producers.h), then kernels that share what they read get
// several results (join_results.h), then fusion instructions take their place (build.h).
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_FUSE_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_FUSE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// Replaces groups of instructions by fusion instructions. `explanation`, if any, gets a
// sentence per decision.
absl::Status Fuse(hlo::Module& module, const target::Target& target,
                  std::vector<std::string>* explanation);
inline absl::Status Fuse(hlo::Module& module, const target::Target& target) {
  return Fuse(module, target, nullptr);
}

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_FUSE_H_
