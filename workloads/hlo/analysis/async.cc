#include "workloads/hlo/analysis/async.h"

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

Instruction& StartOf(const Instruction& done) {
  Instruction* i = done.operand(0);
  while (i->opcode() == Opcode::kAsyncUpdate) i = i->operand(0);
  return *i;
}

}  // namespace tpusim::hlo
