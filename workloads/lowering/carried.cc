#include "workloads/lowering/carried.h"

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/kernel_view.h"
#include "workloads/kernels/product.h"

namespace tpusim::lowering {

using hlo::Opcode;

bool IsCarried(const hlo::Instruction& start) {
  return hlo::IsAsyncStart(start.opcode()) && !hlo::IsOffLoaded(start) &&
         (start.opcode() == Opcode::kAllGatherStart ||
          hlo::WrappedBy(start).opcode() == Opcode::kAllGather);
}

isa::Body BeginOfCarried(const hlo::Instruction& start, const configs::ChipParams& chip) {
  isa::Block barrier;
  barrier.latency = ToCycles(chip.ici.launch, chip.clock);
  isa::Body body = {{barrier}};
  for (const hlo::Instruction* operand : start.operands()) {
    body.push_back({isa::Dma{.from = kernels::SpaceOf(operand->shape()),
                             .to = isa::MemorySpace::kHbm,
                             .bytes = operand->shape().ByteSize()}});
  }
  return body;
}

bool Carries(const hlo::Instruction& i) {
  return i.opcode() != Opcode::kCustomCall && kernels::ProductIn(i) != nullptr;
}

}  // namespace tpusim::lowering
