// Opaque kernels: what a Pallas kernel or another custom call costs has been
// written on the instruction (custom_cost.h) by whoever knew it.

#include <fmt/format.h>

#include <algorithm>

#include "configs/status_macros.h"
#include "workloads/lowering/custom_cost.h"
#include "workloads/lowering/kernels/kernels.h"
#include "workloads/lowering/kernels/tile_search.h"

namespace tpusim::lowering {

absl::StatusOr<isa::Kernel> BuildCustomKernel(const KernelView& view,
                                              const passes::Target& target) {
  const hlo::Instruction& call = *view.instruction;
  ASSIGN_OR_RETURN(const CustomCost cost, CustomCostOf(call));
  const configs::ChipParams& chip = target.chip();
  Bytes results(0);
  for (const KernelOutput& output : view.outputs) results += BytesOf(output, target);
  // Stated bytes are reads and writes together; results are at least written.
  const Bytes written = std::min(results, cost.bytes);
  const Bytes read = cost.bytes - written;

  FastestKernel fastest(target);
  const int64_t most = std::max<int64_t>(1, cost.bytes.value() / kMiB * 4);
  for (int64_t parts : CandidateCounts(most, int64_t{1} << 16)) {
    isa::Kernel kernel;
    kernel.grid = {{parts, 1.0}};
    const auto add = [&](isa::WindowKind kind, Bytes bytes) {
      if (bytes == Bytes(0)) return;
      isa::Window w;
      w.kind = kind;
      w.operand = call.name();
      w.bytes = Bytes(CeilDiv(bytes.value(), parts));
      w.moves_with = parts > 1 ? 1U : 0U;
      w.buffers = parts > 1 ? 2 : 1;
      kernel.windows.push_back(w);
    };
    add(isa::WindowKind::kInput, read);
    add(isa::WindowKind::kOutput, written);
    // FLOPs go to the arrays as full-size bf16 products (two per cell and row);
    // transcendentals to their unit, a register at a time.
    const double rows =
        static_cast<double>(cost.flops.value()) /
        (2.0 * static_cast<double>(chip.mxu.rows) * static_cast<double>(chip.mxu.columns) *
         static_cast<double>(chip.mxu.count) * static_cast<double>(parts));
    if (rows > 0) {
      kernel.block.mxu = {std::max<int64_t>(1, static_cast<int64_t>(rows + 0.5)), chip.mxu.rows,
                          chip.mxu.columns * chip.mxu.count, isa::NumberFormat::kBf16, 1};
    }
    kernel.block.eup =
        CeilDiv(cost.transcendentals.value(), chip.vpu.sublanes * chip.vpu.lanes * parts);
    kernel.block.latency = Cycles(chip.vpu.latency_cycles);
    fastest.Offer(kernel, Bytes(0));
  }
  if (!fastest.best()) {
    return UserError(fmt::format("no tiling of {} fits the {} bytes of VMEM that a kernel may use",
                                 call.Describe(), target.ScopedVmem().value()));
  }
  return *fastest.best();
}

}  // namespace tpusim::lowering
