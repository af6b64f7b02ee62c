#include "workloads/kernels/kernels.h"

#include <fmt/format.h>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/custom_cost.h"
#include "workloads/kernels/product.h"

namespace tpusim::kernels {

using hlo::Opcode;

absl::StatusOr<isa::Kernel> BuildKernel(const hlo::Instruction& instruction,
                                        const target::Target& target) {
  const KernelView view = ViewKernel(instruction, target);
  for (const KernelInput& input : view.inputs) {
    if (input.reads() && SpaceOf(input.value->shape()) == isa::MemorySpace::kHost) {
      return NoRule(
          fmt::format("no rule to execute {}: it computes on {}, which is in host memory; "
                      "move it to the device first (jax.device_put)",
                      instruction.Describe(), input.value->name()));
    }
  }
  if (instruction.opcode() == Opcode::kCustomCall) {
    if (!HasKernelOfItsOwn(instruction)) return BuildCustomKernel(view, target);
    if (IsTopKCall(instruction)) return BuildSortKernel(view, target);
    if (IsFactorizationCall(instruction)) return BuildAlgebraKernel(view, target);
    return BuildLoopKernel(view, target);
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

}  // namespace tpusim::kernels
