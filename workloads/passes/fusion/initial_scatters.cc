#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/fusion/reasons.h"
#include "workloads/passes/fusion/steps.h"

namespace tpusim::passes::fusion {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Whether the array that the scatter updates has one value everywhere.
bool BeginsWithSplat(const Instruction& i) {
  return i.opcode() == Opcode::kScatter && hlo::InPlaceResults(i).size() == 1 &&
         !i.has_control_edges() && i.operand(0)->opcode() == Opcode::kBroadcast &&
         i.operand(0)->operand(0)->shape().IsScalar();
}

void Build(Instruction& scatter) {
  Computation& outer = *scatter.parent();
  const std::string name = "scatter_fusion";
  Computation* inside = outer.parent()->AddComputation("fused_" + name);
  std::vector<Instruction*> operands;
  const auto copy_of = [&](const Instruction& i, std::vector<Instruction*> of) {
    return inside->Add(i.opcode(), i.shape(), std::move(of), i.name(), &i);
  };
  const auto taken = [&](Instruction* value) {
    if (value->opcode() == Opcode::kConstant) return copy_of(*value, {});
    const auto number = static_cast<int64_t>(operands.size());
    operands.push_back(value);
    return inside->AddParameter(number, value->shape(), "param_" + std::to_string(number));
  };
  const Instruction& splat = *scatter.operand(0);
  Instruction* begin = copy_of(splat, {taken(splat.operand(0))});
  Instruction* indices = taken(scatter.operand(1));
  Instruction* updates = taken(scatter.operand(2));
  Instruction* root = copy_of(scatter, {begin, indices, updates});
  root->set_called(scatter.called());
  inside->set_root(root);
  Instruction* fusion = outer.Add(Opcode::kFusion, scatter.shape(), operands, name, &scatter);
  fusion->mutable_attrs().set_fusion_kind("kCustom");
  fusion->set_called({inside});
  scatter.ReplaceAllUsesWith(fusion);
}

}  // namespace

bool FuseInitialScatters(Computation& computation, const Records& records) {
  bool changed = false;
  for (Instruction* i : computation.PostOrder()) {
    if (!BeginsWithSplat(*i)) continue;
    records.Add(reasons::kSplatInside, i->name());
    Build(*i);
    changed = true;
  }
  if (changed) computation.RemoveDead();
  return changed;
}

}  // namespace tpusim::passes::fusion
