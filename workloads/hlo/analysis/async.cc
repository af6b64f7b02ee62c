#include "workloads/hlo/analysis/async.h"

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

Instruction& StartOf(const Instruction& done) {
  Instruction* i = done.operand(0);
  while (i->opcode() == Opcode::kAsyncUpdate) i = i->operand(0);
  return *i;
}

Instruction* DoneOf(const Instruction& start) {
  for (const Instruction* i = &start; !i->users().empty();) {
    Instruction* next = i->users()[0];
    if (IsAsyncDone(next->opcode())) return next;
    if (next->opcode() != Opcode::kAsyncUpdate) return nullptr;
    i = next;
  }
  return nullptr;
}

}  // namespace tpusim::hlo
