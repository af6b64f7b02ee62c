#include "workloads/kernels/scalar_block.h"

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::kernels {

isa::Block ScalarBlock(const hlo::Instruction& i) {
  isa::Block block;
  // One slot of the scalar unit and its latency; division is a loop there.
  const bool divides = i.opcode() == hlo::Opcode::kDivide || i.opcode() == hlo::Opcode::kRemainder;
  block.scalar = Cycles(divides ? 32 : 2);
  return block;
}

}  // namespace tpusim::kernels
