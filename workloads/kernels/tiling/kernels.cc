#include "workloads/kernels/tiling/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/kernels/tiling/stated_windows.h"
#include "workloads/kernels/view/product.h"

namespace tpusim::kernels {

using hlo::Opcode;

namespace {

isa::Kernel BuildEstimatedKernel(const KernelView& view, const target::Target& target) {
  const auto windows = StatedWindowsOf(*view.instruction);
  TPUSIM_CHECK(windows && windows->estimate, "an estimate that is not there");
  Bytes read(0), written(0);
  for (const KernelInput& input : view.inputs) {
    if (input.space == isa::MemorySpace::kHbm) read += BytesOf(input, target);
  }
  for (const KernelOutput& output : view.outputs) {
    if (output.space == isa::MemorySpace::kHbm) written += BytesOf(output, target);
  }
  return BuildKernelOfTime(ToTime(*windows->estimate, target.chip().clock), read, written,
                           view.FindMember(IsProduct) != nullptr, view.instruction->name(), target);
}

}  // namespace

absl::StatusOr<isa::Kernel> BuildKernel(const hlo::Instruction& instruction,
                                        const target::Target& target) {
  const KernelView view = ViewKernel(instruction, target);
  for (const KernelInput& input : view.inputs) {
    if (input.reads() && input.value->shape().IsTuple() &&
        instruction.opcode() != Opcode::kCustomCall) {
      return NoRule(fmt::format("no rule to execute {}: its operand {} is a tuple; give it the "
                                "elements",
                                instruction.Describe(), input.value->name()));
    }
    if (input.reads() && SpaceOf(input.value->shape()) == isa::MemorySpace::kHost) {
      return NoRule(
          fmt::format("no rule to execute {}: it computes on {}, which is in host memory; "
                      "move it to the device first (jax.device_put)",
                      instruction.Describe(), input.value->name()));
    }
  }
  for (const KernelOutput& output : view.outputs) {
    if (output.space == isa::MemorySpace::kHost) {
      return NoRule(
          fmt::format("no rule to execute {}: it writes its result to host memory; compute it on "
                      "the device and move it then (jax.device_put)",
                      instruction.Describe()));
    }
  }
  if (hlo::annotations::kTakesEstimate.On(instruction)) return BuildEstimatedKernel(view, target);
  if (instruction.opcode() == Opcode::kCustomCall) {
    if (!HasKernelOfItsOwn(instruction)) return BuildCustomKernel(view, target);
    if (IsTopKCall(instruction)) return BuildSortKernel(view, target);
    if (IsFactorizationCall(instruction)) return BuildAlgebraKernel(view, target);
    return BuildLoopKernel(view, target);
  }
  if (const hlo::Instruction* product = OuterProduct(view.members)) {
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

std::vector<int64_t> CandidateCounts(int64_t units, int64_t limit) {
  std::vector<int64_t> counts;
  for (int64_t power = 1; power <= std::min(units, limit); power *= 2) {
    counts.push_back(power);
    const int64_t between = power * 3 / 2;  // number: effort: counts that are tried
    if (power > 1 && between < std::min(units, limit)) counts.push_back(between);
  }
  if (units <= limit && counts.back() != units) counts.push_back(units);
  return counts;
}

std::vector<int64_t> BatchCounts(int64_t batch) {
  std::vector<int64_t> counts;
  for (int64_t count = 1; count < batch; count *= 2) counts.push_back(count);
  counts.push_back(batch);
  return counts;
}

void FitBuffers(isa::Kernel& kernel) {
  for (isa::Window& w : kernel.windows) {
    bool moves = false;
    for (size_t d = 0; d < kernel.grid.size(); ++d) {
      moves = moves || (((w.moves_with >> d) & 1U) != 0 && kernel.grid[d].count > 1);
    }
    w.buffers = moves ? 2 : 1;
  }
}

Split SplitExtent(int64_t extent, int64_t unit, int64_t count) {
  Split split;
  split.block = std::min(extent, CeilDiv(CeilDiv(extent, unit), count) * unit);
  split.dim.count = CeilDiv(extent, split.block);
  const int64_t last = extent - (split.dim.count - 1) * split.block;
  split.dim.last_fraction = static_cast<double>(last) / static_cast<double>(split.block);
  return split;
}

absl::StatusOr<isa::Kernel> FastestKernel::Best(const hlo::Instruction& of) const {
  if (best_) return *best_;
  return UserError(fmt::format("no tiling of {} fits the {} bytes of VMEM that a kernel may use",
                               of.Describe(), target_.ScopedVmem().value()));
}

bool FastestKernel::Offer(const isa::Kernel& kernel, Bytes scratch) {
  if (timing::WindowBytes(kernel) + scratch > target_.ScopedVmem()) return false;
  if (best_ && timing::KernelTimeBound(target_.chip(), kernel) > best_time_) return true;
  const Picoseconds time = timing::KernelTime(target_.chip(), kernel);
  const bool slower =
      best_ && std::pair(time, kernel.Steps()) >= std::pair(best_time_, best_->Steps());
  if (slower) return true;
  best_ = kernel;
  best_time_ = time;
  ++improvements_;
  return true;
}

}  // namespace tpusim::kernels
