#include <algorithm>
#include <unordered_map>

#include "workloads/cost/candidate.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::cost {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// Returns whether an array is in host memory, which no kernel reads or writes.
bool TouchesHost(const Instruction& i) {
  return hlo::OnHost(i.shape()) || std::ranges::any_of(i.operands(), [](const Instruction* o) {
           return hlo::OnHost(o->shape());
         });
}

}  // namespace

Part PartOf(const Instruction& i) {
  if (TouchesHost(i)) return Part::kNone;
  if (i.opcode() == Opcode::kReduce) return Part::kReduce;  // also of several arrays
  if (!i.shape().IsArray()) return Part::kNone;
  if (i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution) return Part::kProduct;
  if (i.opcode() == Opcode::kDynamicUpdateSlice) return Part::kUpdate;
  if (i.shape().IsScalar()) {
    // Scalar arithmetic belongs to the scalar core.
    return i.opcode() == Opcode::kConstant ? Part::kFree : Part::kNone;
  }
  if (i.opcode() == Opcode::kIota) return Part::kFree;
  if (i.opcode() == Opcode::kBroadcast && i.operand(0)->shape().IsScalar()) return Part::kFree;
  const bool moves = hlo::IsIndexMap(i.opcode()) || i.opcode() == Opcode::kCopy;
  if (hlo::IsElementwise(i) || moves) return Part::kExpression;
  return Part::kNone;
}

KernelGraph::KernelGraph(const hlo::Computation& computation)
    : instructions(computation.PostOrder()) {
  std::unordered_map<const Instruction*, int> number;  // looked up, never iterated
  const size_t n = instructions.size();
  number.reserve(n);
  parts.reserve(n);
  operands.resize(n);
  users.resize(n);
  controls.resize(n);
  controlled.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const Instruction& instruction = *instructions[i];
    const int at = static_cast<int>(i);
    number[&instruction] = at;
    parts.push_back(PartOf(instruction));
    for (const Instruction* operand : instruction.operands()) {
      const int from = number.at(operand);
      operands[i].push_back(from);
      if (users[from].empty() || users[from].back() != at) users[from].push_back(at);
    }
    for (const Instruction* before : instruction.control_predecessors()) {
      const int from = number.at(before);
      controls[i].push_back(from);
      controlled[from].push_back(at);
    }
  }
  root = number.at(computation.root());
}

KernelInputs::KernelInputs(const KernelGraph& graph)
    : graph_(graph),
      may_be_input_(graph.size()),
      member_at_(graph.size(), 0),
      input_at_(graph.size(), 0) {
  for (int i = 0; i < graph.size(); ++i) {
    const hlo::Shape& shape = graph.At(i).shape();
    may_be_input_[i] = shape.IsArray() && !shape.IsScalar() && !graph.Is(i, Part::kFree);
  }
}

const std::vector<int>& KernelInputs::Of(std::span<const int> members) {
  ++stamp_;
  inputs_.clear();
  for (int m : members) member_at_[m] = stamp_;
  for (int m : members) {
    for (int operand : graph_.operands[m]) {
      if (HasMember(operand) || HasInput(operand) || may_be_input_[operand] == 0) continue;
      input_at_[operand] = stamp_;
      inputs_.push_back(operand);
    }
  }
  return inputs_;
}

}  // namespace tpusim::cost
