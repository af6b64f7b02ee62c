#include <unordered_set>

#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/order_edit.h"
#include "workloads/passes/compiled/reasons.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// Whether the value of the instruction is that of its operand, or holds it.
bool Passes(const Instruction& i) {
  return hlo::ForwardsOperand(i.opcode()) || i.opcode() == Opcode::kTuple ||
         i.opcode() == Opcode::kGetTupleElement;
}

// The last in the order that reads the array; loops may pass it on.
Instruction* LastUse(const OrderEdit& order, const Instruction* there) {
  std::unordered_set<const Instruction*> holders = {there};  // looked up, never iterated
  Instruction* last = nullptr;
  for (Instruction* i : order.before()) {
    if (i->removed()) continue;
    for (const Instruction* operand : i->operands()) {
      if (!holders.contains(operand)) continue;
      if (Passes(*i)) holders.insert(i);
      last = i;
      break;
    }
  }
  return last;
}

}  // namespace

absl::StatusOr<bool> BeginPrefetched(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  OrderEdit order(module.entry());
  for (Instruction* start : hlo::Walk(module.entry()->PostOrder())) {
    if (start->opcode() != Opcode::kCopyStart ||
        !start->attrs().has_cross_program_prefetch_index()) {
      continue;
    }
    Instruction* done = hlo::DoneOf(*start);
    if (done == nullptr || start->users().size() != 1) continue;
    const hlo::Shape place = done->shape();
    Instruction* array = start->operand(0);
    Instruction* there = module.entry()->Add(Opcode::kBitcast, place, {array}, "prefetched");
    order.Insert(start, there);
    context.records.Add(reasons::kPrefetched, array->name());
    done->ReplaceAllUsesWith(there);
    // What the compiler had wait for this copy waits for nothing: the same copy for the step that
    // follows begins where the array was read for the last time, as its VMEM is free there.
    done->MoveControlTo(there, there);
    start->MoveControlTo(there, there);
    Instruction* last = LastUse(order, there);
    Instruction* again =
        module.entry()->Add(Opcode::kCopyStart, start->shape(), {array}, "prefetch-start");
    again->AddControlPredecessor(last == nullptr ? there : last);
    Instruction* arrived = module.entry()->Add(Opcode::kCopyDone, place, {again}, "prefetch-done");
    order.InsertAfter(last == nullptr ? start : last, again);
    order.Append(arrived);
    module.entry()->Remove(done);
    module.entry()->Remove(start);
    changed = true;
  }
  return changed;
}

}  // namespace tpusim::passes
