#include "workloads/passes/fusion/fuse.h"

#include <algorithm>
#include <set>
#include <string>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/fusion/plan.h"
#include "workloads/passes/fusion/reasons.h"
#include "workloads/passes/fusion/steps.h"

namespace tpusim::passes {
namespace {

// Kernels that no decision has made: one operation that reads constants.
void ExplainAlone(const hlo::Computation& computation, const std::set<std::string>& before,
                  const Records& records) {
  for (const hlo::Instruction* i : computation.instructions()) {
    if (i->opcode() != hlo::Opcode::kFusion || before.contains(i->name())) continue;
    std::set<const hlo::Instruction*> constants;
    int64_t others = 0;
    for (const hlo::Instruction* member : i->called()[0]->PostOrder()) {
      if (member->opcode() == hlo::Opcode::kParameter) continue;
      const bool constant = std::ranges::all_of(
          member->operands(), [&](const auto* operand) { return constants.contains(operand); });
      if (constant) constants.insert(member);
      if (!constant) ++others;
    }
    if (others == 1) records.Add(reasons::kAlone, i->name());
  }
}

std::set<std::string> InstructionNames(const hlo::Computation& computation) {
  std::set<std::string> names;
  for (const hlo::Instruction* i : computation.instructions()) names.insert(i->name());
  return names;
}

}  // namespace

absl::StatusOr<bool> Fuse(hlo::Module& module, const PassContext& context,
                          const FusionOptions& options) {
  bool changed = false;
  for (hlo::Computation* computation : context.facts->CallsOf(module).control()) {
    const fusion::Graph graph(*computation);
    const auto costs = context.cost.CandidatesOf(graph);
    fusion::Plan plan(graph, *costs, context.target);
    if (options.producers) fusion::InlineProducers(plan, context.records);
    if (options.results) {
      fusion::JoinResults(plan, context.records);
      fusion::ReuseResults(plan, context.records);
    }
    const bool explains = context.records.wanted();
    const std::set<std::string> before =
        explains ? InstructionNames(*computation) : std::set<std::string>();
    changed |= fusion::BuildFusions(*computation, plan);
    if (options.producers) changed |= fusion::FuseInitialScatters(*computation, context.records);
    if (explains) ExplainAlone(*computation, before, context.records);
  }
  return changed;
}

}  // namespace tpusim::passes
