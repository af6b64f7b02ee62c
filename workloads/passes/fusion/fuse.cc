#include "workloads/passes/fusion/fuse.h"

#include "workloads/passes/fusion/build.h"
#include "workloads/passes/fusion/explanation.h"
#include "workloads/passes/fusion/graph.h"
#include "workloads/passes/fusion/inline_producers.h"
#include "workloads/passes/fusion/join_results.h"
#include "workloads/passes/fusion/plan.h"
#include "workloads/passes/fusion/price.h"
#include "workloads/passes/pipeline/control.h"

namespace tpusim::passes {

absl::Status Fuse(hlo::Module& module, const target::Target& target,
                  std::vector<std::string>* lines) {
  fusion::Explanation explanation(lines);
  for (hlo::Computation* computation : ControlComputations(module)) {
    const fusion::Graph graph(*computation);
    fusion::Pricing pricing(graph, target);
    fusion::Plan plan(graph, pricing);
    fusion::InlineProducers(plan, explanation);
    fusion::JoinResults(plan, explanation);
    fusion::BuildFusions(*computation, plan);
  }
  return absl::OkStatus();
}

}  // namespace tpusim::passes
