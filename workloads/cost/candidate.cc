#include "workloads/cost/candidate.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tpusim::cost {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

class Fuser {
 public:
  Fuser(hlo::Module& module, const KernelGraph& graph, const Candidate& candidate,
        const std::string& name)
      : graph_(graph),
        candidate_(candidate),
        computation_(*module.AddComputation("fused_" + name)) {}

  Fused Run() {
    for (int m : candidate_.members) inside_[m] = Clone(m);
    std::vector<Instruction*> results;
    std::vector<hlo::Shape> shapes;
    for (int root : candidate_.roots) {
      results.push_back(inside_.at(root));
      shapes.push_back(results.back()->shape());
    }
    fused_.computation = &computation_;
    fused_.shape = results.size() == 1 ? shapes[0] : hlo::MakeTupleShape(shapes);
    computation_.set_root(results.size() == 1
                              ? results[0]
                              : computation_.Add(Opcode::kTuple, fused_.shape, results, "results"));
    const Part hero = HeroOf(graph_, candidate_.members);
    // As the TPU compiler has it, around reductions too.
    fused_.kind = hero == Part::kProduct ? "kOutput" : "kLoop";
    return std::move(fused_);
  }

 private:
  Instruction* Clone(int value) {
    std::vector<Instruction*> operands;
    for (int operand : graph_.operands[value]) operands.push_back(Inside(operand));
    const Instruction& i = graph_.At(value);
    Instruction* copy = computation_.Add(i.opcode(), i.shape(), std::move(operands), i.name(), &i);
    copy->set_called(i.called());
    return copy;
  }

  // The counterpart of a value in the new computation: a member's copy, that of what is free, or a
  // parameter.
  Instruction* Inside(int value) {
    const auto known = inside_.find(value);
    if (known != inside_.end()) return known->second;
    Instruction* inside = nullptr;
    if (graph_.Is(value, Part::kFree)) {
      inside = Clone(value);
    } else {
      const auto number = static_cast<int64_t>(fused_.inputs.size());
      inside = computation_.AddParameter(number, graph_.At(value).shape(),
                                         "param_" + std::to_string(number));
      fused_.inputs.push_back(value);
    }
    inside_[value] = inside;
    return inside;
  }

  const KernelGraph& graph_;
  const Candidate& candidate_;
  Computation& computation_;
  Fused fused_;
  std::unordered_map<int, Instruction*> inside_;  // looked up, never iterated
};

}  // namespace

Part HeroOf(const KernelGraph& graph, std::span<const int> members) {
  Part hero = Part::kExpression;
  for (int m : members) hero = std::max(hero, graph.parts[m]);
  return hero;
}

Fused Fuse(hlo::Module& module, const KernelGraph& graph, const Candidate& candidate,
           const std::string& name) {
  return Fuser(module, graph, candidate, name).Run();
}

bool IsLone(const KernelGraph& graph, const Candidate& candidate) {
  if (candidate.members.size() > 1) return false;
  const std::vector<int>& operands = graph.operands[candidate.members[0]];
  return std::none_of(operands.begin(), operands.end(),
                      [&](int o) { return graph.Is(o, Part::kFree); });
}

}  // namespace tpusim::cost
