#include "workloads/cost/candidate.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tpusim::cost {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Returns the shape of a member or an input, as the candidate has it.
hlo::Shape ShapeIn(const KernelGraph& graph, const Candidate& candidate, int value) {
  hlo::Shape shape = graph.At(value).shape();
  for (const Placed& placed : candidate.placed) {
    if (placed.value == value) shape.layout = placed.layout;
  }
  return shape;
}

// Calls what `i` calls, or copies of it where `copy` is in another module.
void CallAs(const Instruction& i, Instruction* copy, hlo::Module& module) {
  std::vector<Computation*> called = i.called();
  if (i.parent()->parent() != &module) {
    for (Computation*& c : called) c = module.CloneComputation(*c);
  }
  copy->set_called(std::move(called));
}

class Fuser {
 public:
  Fuser(hlo::Module& module, const KernelGraph& graph, const Candidate& candidate,
        const std::string& name)
      : module_(module),
        graph_(graph),
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
    Instruction* copy = computation_.Add(i.opcode(), ShapeIn(graph_, candidate_, value),
                                         std::move(operands), i.name(), &i);
    CallAs(i, copy, module_);
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
      inside = computation_.AddParameter(number, ShapeIn(graph_, candidate_, value),
                                         "param_" + std::to_string(number));
      fused_.inputs.push_back(value);
    }
    inside_[value] = inside;
    return inside;
  }

  hlo::Module& module_;
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

std::unique_ptr<hlo::Module> Isolate(const KernelGraph& graph, const Candidate& candidate) {
  auto module = std::make_unique<hlo::Module>("candidate");
  Computation* computation = module->AddComputation("candidate");
  module->set_entry(computation);
  std::unordered_map<int, Instruction*> parameters;  // looked up, never iterated
  const auto operands = [&](const std::vector<int>& values) {
    std::vector<Instruction*> made;
    for (int value : values) {
      Instruction*& parameter = parameters[value];
      if (parameter == nullptr) {
        const auto number = static_cast<int64_t>(parameters.size()) - 1;
        parameter = computation->AddParameter(number, ShapeIn(graph, candidate, value), "operand");
      }
      made.push_back(parameter);
    }
    return made;
  };
  Instruction* kernel = nullptr;
  if (IsLone(graph, candidate)) {
    const int value = candidate.members[0];
    const Instruction& i = graph.At(value);
    kernel = computation->Add(i.opcode(), ShapeIn(graph, candidate, value),
                              operands(graph.operands[value]), "", &i);
    CallAs(i, kernel, *module);
  } else {
    const Fused fused = Fuse(*module, graph, candidate, "candidate");
    kernel = computation->Add(Opcode::kFusion, fused.shape, operands(fused.inputs));
    kernel->mutable_attrs().set_fusion_kind(fused.kind);
    kernel->set_called({fused.computation});
  }
  computation->set_root(kernel);
  return module;
}

}  // namespace tpusim::cost
