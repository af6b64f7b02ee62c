#include "workloads/passes/fusion/build.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes::fusion {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// What a fusion is called after: its product, else its last result.
const Instruction& HeroInstruction(const Graph& graph, const Group& group) {
  for (int m : group.members) {
    if (graph.Is(m, Part::kProduct)) return graph.At(m);
  }
  return graph.At(group.roots.back());
}

// As XLA does: the kinds of work inside, the last first, then "fusion".
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

class FusionBuilder {
 public:
  FusionBuilder(Computation& outer, const Plan& plan, const Group& group)
      : outer_(outer),
        graph_(plan.graph()),
        group_(group),
        name_(FusionName(graph_, group)),
        inner_(*outer.parent()->AddComputation("fused_" + name_)) {}

  void Build(std::vector<Replacement>& replacements) {
    for (int m : group_.members) inside_[m] = Clone(m);
    std::vector<Instruction*> results;
    std::vector<hlo::Shape> shapes;
    for (int root : group_.roots) {
      results.push_back(inside_.at(root));
      shapes.push_back(results.back()->shape());
    }
    const bool one = results.size() == 1;
    const hlo::Shape shape = one ? shapes[0] : hlo::MakeTupleShape(shapes);
    inner_.set_root(one ? results[0] : inner_.Add(Opcode::kTuple, shape, results, "results"));
    Instruction* fusion = outer_.Add(Opcode::kFusion, shape, parameters_, name_);
    fusion->mutable_attrs().set_fusion_kind(Kind());
    const Instruction& hero = HeroInstruction(graph_, group_);
    *fusion->mutable_attrs().mutable_metadata() = hero.attrs().metadata();
    fusion->set_called({&inner_});
    for (size_t n = 0; n < group_.roots.size(); ++n) {
      Instruction* root = graph_.instructions[group_.roots[n]];
      Instruction* result = fusion;
      if (!one) {
        result = outer_.Add(Opcode::kGetTupleElement, shapes[n], {fusion}, "result");
        result->mutable_attrs().set_tuple_index(static_cast<int64_t>(n));
        *result->mutable_attrs().mutable_metadata() = root->attrs().metadata();
      }
      replacements.push_back({root, result});
    }
  }

 private:
  const char* Kind() const {
    Part hero = Part::kExpression;
    for (int m : group_.members) hero = std::max(hero, graph_.parts[m]);
    return hero == Part::kProduct ? "kOutput" : hero == Part::kReduce ? "kInput" : "kLoop";
  }

  Instruction* Clone(int value) {
    std::vector<Instruction*> operands;
    for (int operand : graph_.operands[value]) operands.push_back(Inside(operand));
    const Instruction& i = graph_.At(value);
    Instruction* copy = inner_.Add(i.opcode(), i.shape(), std::move(operands), i.name(), &i);
    copy->set_called(i.called());
    return copy;
  }

  // What stands for a value inside: the member itself, a copy of what is free, or a
  // parameter.
  Instruction* Inside(int value) {
    const auto known = inside_.find(value);
    if (known != inside_.end()) return known->second;
    Instruction* inside = nullptr;
    if (graph_.Is(value, Part::kFree)) {
      inside = Clone(value);
    } else {
      const auto number = static_cast<int64_t>(parameters_.size());
      inside = inner_.AddParameter(number, graph_.At(value).shape(),
                                   "param_" + std::to_string(number));
      parameters_.push_back(graph_.instructions[value]);
    }
    inside_[value] = inside;
    return inside;
  }

  Computation& outer_;
  const Graph& graph_;
  const Group& group_;
  const std::string name_;
  Computation& inner_;
  std::unordered_map<int, Instruction*> inside_;  // looked up, never iterated
  std::vector<Instruction*> parameters_;
};

bool ReadsFree(const Graph& graph, const Group& group) {
  return std::any_of(group.members.begin(), group.members.end(), [&](int m) {
    const std::vector<int>& operands = graph.operands[m];
    return std::any_of(operands.begin(), operands.end(),
                       [&](int o) { return graph.Is(o, Part::kFree); });
  });
}

}  // namespace

bool BuildFusions(Computation& computation, const Plan& plan) {
  std::vector<Replacement> replacements;
  for (int g = 0; g < plan.size(); ++g) {
    const Group& group = plan.group(g);
    if (!group.alive || (group.members.size() < 2 && !ReadsFree(plan.graph(), group))) continue;
    FusionBuilder(computation, plan, group).Build(replacements);
  }
  // Only now: until here the members are as they were planned.
  for (const Replacement& r : replacements) r.root->ReplaceAllUsesWith(r.result);
  computation.RemoveDead();
  return !replacements.empty();
}

}  // namespace tpusim::passes::fusion
