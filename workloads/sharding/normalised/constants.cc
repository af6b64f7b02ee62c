#include "workloads/sharding/normalised/constants.h"

#include <algorithm>
#include <unordered_set>

#include "workloads/sharding/normalised/limits.h"

namespace tpusim::sharding {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// A larger literal is an array, not a constant that every user can have for itself.
constexpr int64_t kMaxLiteralElements = 256;

bool KeepsConstant(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kSlice:
      return true;
    default:
      return hlo::IsElementwise(instruction.opcode());
  }
}

bool IsScalar(const Instruction& instruction) {
  return instruction.shape().IsArray() && instruction.shape().rank() == 0;
}

class Splitter {
 public:
  Splitter(Computation* computation, ConstantCopies* copies)
      : computation_(computation), copies_(*copies) {}

  void Run() {
    for (Instruction* instruction : computation_->PostOrder()) {
      if (IsConstant(*instruction)) {
        constants_.insert(instruction);
        continue;
      }
      // A scalar made large: as good as a constant for its own users.
      if (instruction->opcode() == Opcode::kBroadcast && IsScalar(*instruction->operand(0))) {
        splittable_.insert(instruction);
        continue;
      }
      for (size_t i = 0; i < instruction->operands().size(); ++i) SplitUse(instruction, i);
    }
  }

 private:
  bool IsConstant(const Instruction& instruction) const {
    if (!instruction.shape().IsArray() || instruction.IsRoot()) return false;
    switch (instruction.opcode()) {
      case Opcode::kIota:
        return true;
      case Opcode::kConstant:
        return instruction.shape().ElementCount() <= kMaxLiteralElements;
      default:
        break;
    }
    const auto& operands = instruction.operands();
    return KeepsConstant(instruction) && !operands.empty() &&
           instruction.control_predecessors().empty() &&
           std::ranges::all_of(
               operands, [&](const Instruction* operand) { return constants_.contains(operand); });
  }

  // The first use keeps the original.
  void SplitUse(Instruction* user, size_t i) {
    Instruction* value = user->operand(i);
    if (IsScalar(*value) || (!constants_.contains(value) && !splittable_.contains(value))) return;
    if (used_.insert(value).second && FirstUseOfAll(value)) return;
    std::vector<Instruction*> order;  // the expression, operands first
    if (!Collect(value, &order)) return;
    std::unordered_map<const Instruction*, Instruction*> copy_of;
    for (Instruction* from : order) {
      std::vector<Instruction*> operands;
      for (Instruction* operand : from->operands()) {
        const auto it = copy_of.find(operand);
        operands.push_back(it == copy_of.end() ? operand : it->second);
      }
      Instruction* copy =
          computation_->Add(from->opcode(), from->shape(), operands, from->name(), from);
      copies_.emplace_back(copy, from);
      copy_of[from] = copy;
    }
    user->ReplaceOperand(i, copy_of.at(value));
  }

  // Everything below is still unused by other expressions' first uses.
  bool FirstUseOfAll(Instruction* value) {
    std::vector<Instruction*> order;
    if (!Collect(value, &order)) return true;
    bool first = true;
    for (Instruction* part : order) {
      if (part != value) first = used_.insert(part).second && first;
    }
    return first;
  }

  // The non-scalar constant instructions that `value` is made of.
  bool Collect(Instruction* value, std::vector<Instruction*>* order) const {
    std::vector<std::pair<Instruction*, size_t>> stack = {{value, 0}};
    std::unordered_set<const Instruction*> seen = {value};
    while (!stack.empty()) {
      auto& [instruction, next] = stack.back();
      if (next == instruction->operands().size()) {
        order->push_back(instruction);
        if (std::ssize(*order) > limits::kConstantExpression.most()) {
          limits::kConstantExpression.Reached();
          return false;
        }
        stack.pop_back();
        continue;
      }
      Instruction* operand = instruction->operand(next++);
      if (IsScalar(*operand) || !constants_.contains(operand)) continue;
      if (seen.insert(operand).second) stack.emplace_back(operand, 0);
    }
    return true;
  }

  Computation* computation_;
  ConstantCopies& copies_;
  std::unordered_set<const Instruction*> constants_;   // made of constants only
  std::unordered_set<const Instruction*> splittable_;  // broadcast scalars
  std::unordered_set<const Instruction*> used_;
};

}  // namespace

void SplitConstants(Computation* computation, ConstantCopies* copies) {
  Splitter(computation, copies).Run();
}

}  // namespace tpusim::sharding
