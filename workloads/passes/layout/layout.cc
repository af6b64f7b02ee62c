#include "workloads/passes/layout/layout.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/layout/layout_problem.h"
#include "workloads/passes/layout/order_classes.h"
#include "workloads/passes/layout/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool WasCompiled(const hlo::Module& module) {
  for (const hlo::Computation* computation : ControlComputations(module)) {
    for (const Instruction* i : computation->PostOrder()) {
      if (i->opcode() == Opcode::kFusion) return true;
      const std::vector<const hlo::Shape*> leaves = hlo::Leaves(i->shape());
      if (std::any_of(leaves.begin(), leaves.end(),
                      [](const hlo::Shape* leaf) { return !leaf->layout.tiles.empty(); })) {
        return true;
      }
    }
  }
  return false;
}

// Returns the shapes of all instructions with layouts, by name.
std::map<std::string, std::string> ShapesOf(const hlo::Module& module) {
  std::map<std::string, std::string> shapes;
  for (const hlo::Computation* computation : ControlComputations(module)) {
    for (const Instruction* i : computation->instructions()) {
      shapes[i->name()] = i->shape().ToString(true);
    }
  }
  return shapes;
}

void ExplainLayouts(const std::map<std::string, std::string>& before,
                    const std::map<std::string, std::string>& after, const Records& records) {
  for (const auto& [name, shape] : after) {
    const auto was = before.find(name);
    if (was == before.end()) {
      records.Add(reasons::kLayoutCopy, name, {{"shape", shape}});
    } else if (was->second != shape) {
      records.Add(reasons::kLayoutChosen, name, {{"shape", shape}});
    }
  }
}

}  // namespace

absl::StatusOr<bool> AssignLayouts(hlo::Module& module, const PassContext& context) {
  const target::Target& target = context.target;
  bool changed = false;
  if (WasCompiled(module)) {
    context.records.Add(reasons::kLayoutsGiven, module.name());
  } else {
    const auto before =
        context.records.wanted() ? ShapesOf(module) : std::map<std::string, std::string>();
    const LayoutProblem problem = BuildLayoutProblem(module, target);
    changed = ApplyLayouts(module, problem, ChooseLayouts(problem, target, context.cost));
    if (context.records.wanted()) ExplainLayouts(before, ShapesOf(module), context.records);
  }
  for (hlo::Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->PostOrder()) {
      const bool renames = i->opcode() == Opcode::kReshape || i->opcode() == Opcode::kTranspose;
      if (!renames) continue;
      const bool moves = !MovesNothing(*i, target);
      context.records.Add(moves ? reasons::kMoves : reasons::kBitcast, i->name());
      if (moves) continue;
      i->ReplaceAllUsesWith(
          computation->Add(Opcode::kBitcast, i->shape(), {i->operand(0)}, "bitcast", i));
      changed = true;
    }
    changed = computation->RemoveDead() > 0 || changed;
  }
  return changed;
}

}  // namespace tpusim::passes
