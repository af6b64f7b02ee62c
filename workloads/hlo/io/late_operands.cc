#include "workloads/hlo/io/late_operands.h"

#include <algorithm>
#include <string>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

// The computation that a start without operands is to run on `operands` of them; null: it is of
// another form.
Computation* CalledLate(const Instruction& start, int64_t operands) {
  if (start.opcode() != Opcode::kAsyncStart || !start.operands().empty()) return nullptr;
  if (start.called().size() != 1 || start.called()[0]->root() == nullptr) return nullptr;
  // Files have the operands of the update as parameters there, texts have none.
  Computation* whole = start.called()[0];
  const Instruction& call = *whole->root();
  const bool passes_on = std::ranges::all_of(call.operands(), [](const Instruction* operand) {
    return operand->opcode() == Opcode::kParameter;
  });
  const bool calls = call.opcode() == Opcode::kCustomCall || call.opcode() == Opcode::kCall;
  if (calls && passes_on && call.called().size() == 1) return call.called()[0];
  return whole->num_parameters() == operands ? whole : nullptr;
}

void Join(Instruction* start, Instruction* update, Computation* called) {
  Computation& computation = *update->parent();
  const std::vector<Instruction*> operands(update->operands().begin() + 1,
                                           update->operands().end());
  std::vector<Shape> shapes;
  for (const Instruction* operand : operands) shapes.push_back(operand->shape());
  Instruction* joined = computation.Add(
      Opcode::kAsyncStart,
      MakeTupleShape({MakeTupleShape(std::move(shapes)), update->shape().tuple[1]}), operands,
      start->name());
  joined->set_called({called});
  pb::HloInstructionProto& attrs = joined->mutable_attrs();
  attrs.set_async_execution_thread(start->attrs().async_execution_thread());
  *attrs.mutable_metadata() = start->attrs().metadata();
  if (start->has_control_edges()) start->MoveControlTo(joined, joined);
  if (update->has_control_edges()) update->MoveControlTo(joined, joined);
  update->ReplaceAllUsesWith(joined);
  std::vector<Instruction*> schedule = computation.schedule();
  std::ranges::replace(schedule, update, joined);
  std::erase(schedule, start);
  computation.set_schedule({});
  computation.Remove(update);
  computation.Remove(start);
  computation.set_schedule(std::move(schedule));
}

// Removes an instruction that nothing reads; the order goes on without it.
void Remove(Instruction* unread) {
  Computation& computation = *unread->parent();
  std::vector<Instruction*> schedule = computation.schedule();
  std::erase(schedule, unread);
  computation.set_schedule({});
  computation.Remove(unread);
  computation.set_schedule(std::move(schedule));
}

// The module is not verified yet: what is no element of a start's tuple stays, to be refused.
void Replace(Instruction* read, Instruction* operand) {
  if (read->IsRoot() || read->has_control_edges()) return;
  if (!read->shape().IsArray() || !operand->shape().IsArray() ||
      read->shape().element_type != operand->shape().element_type ||
      !SameDims(read->shape(), operand->shape())) {
    return;
  }
  read->ReplaceAllUsesWith(operand);
  Remove(read);
}

}  // namespace

void JoinLateOperands(Module& module) {
  bool joined = false;
  for (Computation* computation : module.computations()) {
    for (Instruction* update : Walk(computation->instructions())) {
      if (update->opcode() != Opcode::kAsyncUpdate || update->operands().size() < 2) continue;
      if (!update->shape().IsTuple() || update->shape().tuple.size() < 2) continue;
      Instruction* start = update->operand(0);
      Computation* called = CalledLate(*start, std::ssize(update->operands()) - 1);
      if (called == nullptr || start->users().size() != 1) continue;
      Join(start, update, called);
      joined = true;
    }
  }
  // What a start wraps is not called any more.
  if (joined) module.RemoveUnreachable();
}

void ReadOperandsThemselves(Module& module) {
  for (Computation* computation : module.computations()) {
    for (Instruction* read : Walk(computation->instructions())) {
      if (read->opcode() != Opcode::kGetTupleElement || read->operands().size() != 1) continue;
      Instruction* start = read->operand(0);
      const int64_t index = read->attrs().tuple_index();
      // ((operands), result, ...), or (result, operand, ...) of a copy.
      if (start->opcode() == Opcode::kCopyStart && index == 1) {
        if (start->operands().size() == 1) Replace(read, start->operand(0));
      } else if (start->opcode() == Opcode::kAsyncStart && index == 0) {
        for (Instruction* element : Walk(read->users())) {
          if (element->opcode() != Opcode::kGetTupleElement) continue;
          const int64_t n = element->attrs().tuple_index();
          if (n >= 0 && n < std::ssize(start->operands())) Replace(element, start->operand(n));
        }
        if (read->users().empty() && !read->IsRoot() && !read->has_control_edges()) Remove(read);
      }
    }
  }
}

}  // namespace tpusim::hlo
