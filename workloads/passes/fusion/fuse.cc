#include "workloads/passes/fusion/fuse.h"

#include "workloads/hlo/analysis/control.h"
#include "workloads/passes/fusion/build.h"
#include "workloads/passes/fusion/explanation.h"
#include "workloads/passes/fusion/graph.h"
#include "workloads/passes/fusion/inline_producers.h"
#include "workloads/passes/fusion/join_results.h"
#include "workloads/passes/fusion/plan.h"
#include "workloads/passes/fusion/price.h"
#include "workloads/passes/fusion/reuse_results.h"

namespace tpusim::passes {

absl::StatusOr<bool> Fuse(hlo::Module& module, const PassContext& context,
                          const FusionOptions& options) {
  fusion::Explanation explanation(context.records);
  bool changed = false;
  for (hlo::Computation* computation : ControlComputations(module)) {
    const fusion::Graph graph(*computation);
    fusion::Pricing pricing(graph, context.target);
    fusion::Plan plan(graph, pricing);
    if (options.producers) fusion::InlineProducers(plan, explanation);
    if (options.results) {
      fusion::JoinResults(plan, explanation);
      fusion::ReuseResults(plan, explanation);
    }
    changed |= fusion::BuildFusions(*computation, plan);
  }
  return changed;
}

}  // namespace tpusim::passes
