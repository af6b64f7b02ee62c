#include "workloads/lowering/carried.h"

#include <algorithm>

#include "workloads/cost/transfers.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/view/kernel_view.h"
#include "workloads/kernels/view/product.h"

namespace tpusim::lowering {

using hlo::Opcode;

bool IsCarried(const hlo::Instruction& start) {
  return hlo::IsAsyncStart(start.opcode()) && !hlo::IsOffLoaded(start) &&
         (start.opcode() == Opcode::kAllGatherStart ||
          hlo::WrappedBy(start).opcode() == Opcode::kAllGather);
}

isa::Body BeginOfCarried(const hlo::Instruction& start, const configs::ChipParams& chip) {
  isa::Body body;
  const hlo::Instruction* done = hlo::DoneOf(start);
  const isa::MemorySpace to = done != nullptr && done->shape().IsArray()
                                  ? kernels::SpaceOf(done->shape())
                                  : isa::MemorySpace::kHbm;
  for (const hlo::Instruction* operand : start.operands()) {
    body.push_back({isa::Dma{.from = kernels::SpaceOf(operand->shape()),
                             .to = to,
                             .bytes = operand->shape().ByteSize()}});
  }
  // The barrier is raised before the copy and waited for behind it.
  const Picoseconds copied = cost::TimeOfTransfer(chip, body);
  isa::Block barrier;
  barrier.latency = ToCycles(chip.ici.launch - std::min(chip.ici.launch, copied), chip.clock);
  if (barrier.latency > Cycles(0)) body.push_back({barrier});
  return body;
}

bool Carries(const hlo::Instruction& i) {
  return i.opcode() != Opcode::kCustomCall && kernels::ProductIn(i) != nullptr;
}

}  // namespace tpusim::lowering
