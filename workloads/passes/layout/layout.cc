#include "workloads/passes/layout/layout.h"

#include <algorithm>
#include <vector>

#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/layout/apply_layouts.h"
#include "workloads/passes/layout/choose_layouts.h"
#include "workloads/passes/layout/layout_problem.h"
#include "workloads/passes/layout/same_bytes.h"

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

}  // namespace

absl::StatusOr<bool> AssignLayouts(hlo::Module& module, const PassContext& context) {
  const target::Target& target = context.target;
  bool changed = false;
  if (!WasCompiled(module)) {
    const LayoutProblem problem = PoseLayoutProblem(module, target);
    changed = ApplyLayouts(module, problem, ChooseLayouts(problem, target, *context.cost));
  }
  for (hlo::Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->PostOrder()) {
      const bool renames = i->opcode() == Opcode::kReshape || i->opcode() == Opcode::kTranspose;
      if (!renames || !MovesNothing(*i, target)) continue;
      Instruction* bitcast =
          computation->Add(Opcode::kBitcast, i->shape(), {i->operand(0)}, "bitcast");
      *bitcast->mutable_attrs().mutable_metadata() = i->attrs().metadata();
      i->ReplaceAllUsesWith(bitcast);
      changed = true;
    }
    changed = computation->RemoveDead() > 0 || changed;
  }
  return changed;
}

}  // namespace tpusim::passes
