// Facts of analyses about the module that a pipeline works on, each made when a pass asks for it
// first and kept until a pass has changed the module.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_FACTS_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_FACTS_H_

#include <memory>
#include <optional>

#include "workloads/buffers/memory_plan.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// References hold until what they refer to is forgotten.
class Facts {
 public:
  const hlo::CallGraph& CallsOf(const hlo::Module& module) {
    if (!calls_) calls_.emplace(module);
    return *calls_;
  }
  hlo::ModuleAliases& Aliases() { return aliases_; }
  // Also what is known of integers: Loops(module).values().
  hlo::ModuleLoops& Loops(const hlo::Module& module) {
    if (!loops_) loops_ = std::make_unique<hlo::ModuleLoops>(module);
    return *loops_;
  }
  // The module must be scheduled.
  const buffers::MemoryPlan& PlanOf(const hlo::Module& module, const target::Target& target) {
    if (!plan_) plan_ = buffers::PlanBuffers(module, aliases_, target);
    return *plan_;
  }

  // The module has changed, or only the order of its instructions.
  void Forget() { *this = Facts(); }
  void ForgetOrder() { plan_.reset(); }

 private:
  std::optional<hlo::CallGraph> calls_;
  hlo::ModuleAliases aliases_;
  std::unique_ptr<hlo::ModuleLoops> loops_;
  std::optional<buffers::MemoryPlan> plan_;
};

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_FACTS_H_
