#include "workloads/lowering/kernels/kernels.h"

#include "workloads/hlo/opcode.h"
#include "workloads/lowering/custom_cost.h"
#include "workloads/lowering/kernels/product.h"

namespace tpusim::lowering {

using hlo::Opcode;

absl::StatusOr<isa::Kernel> BuildKernel(const hlo::Instruction& instruction,
                                        const passes::Target& target) {
  const KernelView view = ViewKernel(instruction);
  if (instruction.opcode() == Opcode::kCustomCall) {
    if (IsTopKCall(instruction)) return BuildSortKernel(view, target);
    return IsPartialReduceCall(instruction) ? BuildLoopKernel(view, target)
                                            : BuildCustomKernel(view, target);
  }
  if (const hlo::Instruction* product = view.FindMember(IsProduct)) {
    return RunsOnVectorUnits(*product) ? BuildLoopKernel(view, target)
                                       : BuildDotKernel(view, target);
  }
  const auto sorts = [](Opcode op) { return op == Opcode::kSort || op == Opcode::kTopk; };
  if (view.FindMember(sorts) != nullptr) return BuildSortKernel(view, target);
  const auto algebra = [](Opcode op) {
    return op == Opcode::kCholesky || op == Opcode::kTriangularSolve || op == Opcode::kFft;
  };
  if (view.FindMember(algebra) != nullptr) return BuildAlgebraKernel(view, target);
  return BuildLoopKernel(view, target);
}

}  // namespace tpusim::lowering
