#include "workloads/hlo/transforms/split_tuple_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

// Returns the value that replaces one copy; `made` receives its instructions in execution order.
Instruction* CopyOf(Instruction* value, const Shape& shape, const Instruction& like,
                    std::vector<Instruction*>& made) {
  Computation& computation = *like.parent();
  const auto add = [&](Opcode opcode, const Shape& of, std::vector<Instruction*> operands) {
    made.push_back(computation.Add(opcode, of, std::move(operands), like.name(), &like));
    return made.back();
  };
  if (shape.IsArray()) return add(Opcode::kCopy, shape, {value});
  if (!shape.IsTuple()) return value;  // a token
  std::vector<Instruction*> elements;
  for (size_t i = 0; i < shape.tuple.size(); ++i) {
    Instruction* element = add(Opcode::kGetTupleElement, value->shape().tuple[i], {value});
    element->mutable_attrs().set_tuple_index(static_cast<int64_t>(i));
    elements.push_back(CopyOf(element, shape.tuple[i], like, made));
  }
  return add(Opcode::kTuple, shape, std::move(elements));
}

void Split(Instruction* copy) {
  Computation& computation = *copy->parent();
  std::vector<Instruction*> made;
  Instruction* whole = CopyOf(copy->operand(0), copy->shape(), *copy, made);
  if (copy->has_control_edges()) copy->MoveControlTo(made.front(), whole);
  copy->ReplaceAllUsesWith(whole);
  std::vector<Instruction*> schedule = computation.schedule();
  const auto place = std::ranges::find(schedule, copy);
  if (place != schedule.end()) {
    schedule.insert(schedule.erase(place), made.begin(), made.end());
    computation.set_schedule(std::move(schedule));
  }
  computation.Remove(copy);
}

}  // namespace

void SplitTupleCopies(Module& module) {
  for (Computation* computation : module.computations()) {
    for (Instruction* i : Walk(computation->instructions())) {
      if (i->opcode() == Opcode::kCopy && i->shape().IsTuple()) Split(i);
    }
  }
}

}  // namespace tpusim::hlo
