#include "workloads/passes/host/carried_copies.h"

#include <unordered_set>
#include <vector>

#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/loop_carries.h"

namespace tpusim::passes {
namespace {

using hlo::HostTransfer;
using hlo::Instruction;
using hlo::Opcode;

bool IsOtherName(const Instruction& i) {
  return i.opcode() == Opcode::kBitcast || i.opcode() == Opcode::kGetTupleElement;
}

// The instruction that makes the value.
Instruction* MadeBy(Instruction* value) {
  while (IsOtherName(*value)) value = value->operand(0);
  return value;
}

// Adds the instructions that read the value, under any name.
void AddReaders(const Instruction& value, std::vector<Instruction*>& readers) {
  for (Instruction* user : hlo::Walk(value.users())) {
    if (user->opcode() == Opcode::kBitcast) {
      AddReaders(*user, readers);
    } else if (!user->IsRoot()) {
      readers.push_back(user);
    }
  }
}

bool Follows(const Instruction& later, const Instruction& earlier) {
  std::unordered_set<const Instruction*> seen;  // asked, never iterated over
  std::vector<const Instruction*> todo = {&later};
  while (!todo.empty()) {
    const Instruction* i = todo.back();
    todo.pop_back();
    if (i == &earlier) return true;
    if (!seen.insert(i).second) continue;
    for (const auto* before : {&i->operands(), &i->control_predecessors()}) {
      todo.insert(todo.end(), before->begin(), before->end());
    }
  }
  return false;
}

// Orders them; returns whether nothing did before.
bool Order(Instruction* earlier, Instruction* later) {
  if (earlier == later || Follows(*earlier, *later) || Follows(*later, *earlier)) return false;
  later->AddControlPredecessor(earlier);
  return true;
}

}  // namespace

bool SendBeforeOverwriting(Instruction* loop) {
  hlo::LoopCarry carry;
  if (!hlo::LoopCarry::Find(loop, &carry)) return false;
  bool changed = false;
  for (size_t n = 0; n < carry.size(); ++n) {
    if (carry.Forwards(n) || !carry.initial(n)->shape().IsArray()) continue;
    Instruction* maker = MadeBy(carry.next(n));
    if (maker->opcode() == Opcode::kParameter) continue;
    std::vector<Instruction*> readers;
    for (const Instruction* old : carry.in_body(n)) AddReaders(*old, readers);
    for (Instruction* reader : readers) {
      if (!hlo::IsAsyncStart(reader->opcode()) ||
          hlo::HostTransferOf(*reader) != HostTransfer::kToHost) {
        continue;
      }
      if (Instruction* done = hlo::DoneOf(*reader)) changed |= Order(done, maker);
    }
  }
  return changed;
}

}  // namespace tpusim::passes
