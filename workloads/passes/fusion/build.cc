#include <string>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/fusion/steps.h"

namespace tpusim::passes::fusion {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Returns the instruction that names a fusion: its product, else its last result.
const Instruction& HeroInstruction(const Graph& graph, const Group& group) {
  for (int m : group.members) {
    if (graph.Is(m, Part::kProduct)) return graph.At(m);
  }
  return graph.At(group.roots.back());
}

// Returns the name that XLA would give: the kinds of work inside, the last first, then "fusion".
std::string FusionName(const Graph& graph, const Group& group) {
  const Instruction& hero = HeroInstruction(graph, group);
  const Opcode last = graph.At(group.roots.back()).opcode();
  std::string name;
  if (hero.opcode() != last) name = std::string(hlo::OpcodeName(hero.opcode())) + "_";
  return name + std::string(hlo::OpcodeName(last)) + "_fusion";
}

// A result of a group and what makes it now.
struct Replacement {
  Instruction* root = nullptr;
  Instruction* result = nullptr;
};

void Build(Computation& outer, const Graph& graph, const Group& group,
           std::vector<Replacement>& replacements) {
  const std::string name = FusionName(graph, group);
  const cost::Fused fused = cost::Fuse(*outer.parent(), graph, {group.members, group.roots}, name);
  std::vector<Instruction*> operands;
  for (int input : fused.inputs) operands.push_back(graph.instructions[input]);
  const Instruction& hero = HeroInstruction(graph, group);
  Instruction* fusion = outer.Add(Opcode::kFusion, fused.shape, operands, name, &hero);
  fusion->mutable_attrs().set_fusion_kind(fused.kind);
  fusion->set_called({fused.computation});
  for (size_t n = 0; n < group.roots.size(); ++n) {
    Instruction* root = graph.instructions[group.roots[n]];
    Instruction* result = fusion;
    if (group.roots.size() > 1) {
      result = outer.Add(Opcode::kGetTupleElement, root->shape(), {fusion}, "result", root);
      result->mutable_attrs().set_tuple_index(static_cast<int64_t>(n));
    }
    replacements.push_back({root, result});
  }
}

}  // namespace

bool BuildFusions(Computation& computation, const Plan& plan) {
  std::vector<Replacement> replacements;
  for (int g = 0; g < plan.size(); ++g) {
    const Group& group = plan.group(g);
    if (!group.alive || cost::IsLone(plan.graph(), {group.members, group.roots})) continue;
    Build(computation, plan.graph(), group, replacements);
  }
  // Only now: until here the members are as they were planned.
  for (const Replacement& r : replacements) r.root->ReplaceAllUsesWith(r.result);
  computation.RemoveDead();
  return !replacements.empty();
}

}  // namespace tpusim::passes::fusion
