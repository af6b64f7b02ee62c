#include "workloads/passes/simplify/stable_sorts.h"

#include <utility>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/simplify/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// The number of the operand that has positions along the sorted dimension; -1: none.
int64_t OperandWithPositions(const Instruction& sort) {
  for (size_t n = 0; n < sort.operands().size(); ++n) {
    const Instruction& i = *sort.operand(n);
    if (i.opcode() == Opcode::kIota && i.shape().element_type == hlo::PrimitiveType::kS32 &&
        hlo::OnlyDimension(i) == hlo::OnlyDimension(sort)) {
      return static_cast<int64_t>(n);
    }
  }
  return -1;
}

Instruction* Compare(Computation* in, Instruction* a, Instruction* b, const char* direction) {
  hlo::Shape shape;
  shape.element_type = hlo::PrimitiveType::kPred;
  Instruction* compare = in->Add(Opcode::kCompare, shape, {a, b});
  compare->mutable_attrs().set_comparison_direction(direction);
  return compare;
}

// The comparator of the sort, of which the operand `positions` decides between equal elements; it
// has parameters for that, unless the original has them.
Computation* WithTies(const Instruction& sort, int64_t positions) {
  const Computation& original = *sort.called()[0];
  hlo::Module* module = sort.parent()->parent();
  Computation* comparator = module->CloneComputation(original);
  std::vector<Instruction*> parameters = comparator->parameters();
  // What the original says with the two elements exchanged.
  std::vector<Instruction*> exchanged = parameters;
  for (size_t n = 0; n + 1 < exchanged.size(); n += 2) std::swap(exchanged[n], exchanged[n + 1]);
  Instruction* before = comparator->root();
  Instruction* call = comparator->Add(Opcode::kCall, before->shape(), exchanged);
  call->set_called({module->CloneComputation(original)});
  hlo::Shape scalar;
  scalar.element_type = hlo::PrimitiveType::kS32;
  while (std::ssize(parameters) < 2 * (positions + 1)) {
    const int64_t number = std::ssize(parameters);
    parameters.push_back(comparator->AddParameter(number, scalar, "position"));
  }
  Instruction* tie = Compare(comparator, before, call, "EQ");
  Instruction* first =
      Compare(comparator, parameters[2 * positions], parameters[2 * positions + 1], "LT");
  comparator->set_root(comparator->Add(Opcode::kSelect, before->shape(), {tie, first, before}));
  module->InlineCall(call);
  return comparator;
}

// The sort in place of the stable one; its results are those of the operands that there were.
Instruction* Expanded(Instruction* sort) {
  Computation* computation = sort->parent();
  std::vector<Instruction*> operands = sort->operands();
  const std::vector<Instruction*> kept = operands;
  int64_t positions = OperandWithPositions(*sort);
  if (positions < 0) {
    hlo::Shape shape = operands[0]->shape();
    shape.element_type = hlo::PrimitiveType::kS32;
    shape.layout = {};
    Instruction* iota = computation->Add(Opcode::kIota, shape, {});
    hlo::SetDimensions(iota, {hlo::OnlyDimension(*sort)});
    positions = std::ssize(operands);
    operands.push_back(iota);
  }
  hlo::Shape shape;
  shape.element_type = hlo::PrimitiveType::kTuple;
  for (const Instruction* operand : operands) shape.tuple.push_back(operand->shape());
  if (operands.size() == 1) shape = operands[0]->shape();
  Instruction* expanded = computation->Add(Opcode::kSort, shape, operands, sort->name(), sort);
  expanded->set_called({WithTies(*sort, positions)});
  expanded->mutable_attrs().set_is_stable(false);
  if (operands.size() == kept.size()) return expanded;
  std::vector<Instruction*> results;
  for (size_t n = 0; n < kept.size(); ++n) {
    Instruction* result = computation->Add(Opcode::kGetTupleElement, kept[n]->shape(), {expanded});
    result->mutable_attrs().set_tuple_index(static_cast<int64_t>(n));
    results.push_back(result);
  }
  if (results.size() == 1) return results[0];
  return computation->Add(Opcode::kTuple, sort->shape(), results);
}

}  // namespace

absl::StatusOr<bool> ExpandStableSorts(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : hlo::Walk(module.PostOrder())) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (i->opcode() != Opcode::kSort || !i->attrs().is_stable()) continue;
      Instruction* value = Expanded(i);
      context.records.Add(reasons::kSortExpanded, i->name());
      i->MoveControlTo(value, value);
      i->ReplaceAllUsesWith(value);
      computation->Remove(i);
      changed = true;
    }
  }
  if (changed) module.RemoveUnreachable();
  return changed;
}

}  // namespace tpusim::passes
