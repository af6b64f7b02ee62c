#include "workloads/hlo/io/late_operands.h"

#include <algorithm>
#include <string>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

// The computation that a start without operands is to run; null: it is of another form.
Computation* CalledLate(const Instruction& start) {
  if (start.opcode() != Opcode::kAsyncStart || !start.operands().empty()) return nullptr;
  if (start.called().size() != 1 || start.called()[0]->root() == nullptr) return nullptr;
  // Files have the operands of the update as parameters there, texts have none.
  const Instruction& call = *start.called()[0]->root();
  const bool passes_on = std::ranges::all_of(call.operands(), [](const Instruction* operand) {
    return operand->opcode() == Opcode::kParameter;
  });
  if (call.opcode() != Opcode::kCustomCall || !passes_on) return nullptr;
  return call.called().size() == 1 ? call.called()[0] : nullptr;
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

}  // namespace

void JoinLateOperands(Module& module) {
  for (Computation* computation : module.computations()) {
    for (Instruction* update : Walk(computation->instructions())) {
      if (update->opcode() != Opcode::kAsyncUpdate || update->operands().size() < 2) continue;
      if (!update->shape().IsTuple() || update->shape().tuple.size() < 2) continue;
      Instruction* start = update->operand(0);
      Computation* called = CalledLate(*start);
      if (called != nullptr && start->users().size() == 1) Join(start, update, called);
    }
  }
}

}  // namespace tpusim::hlo
