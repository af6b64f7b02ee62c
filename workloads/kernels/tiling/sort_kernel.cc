// Sorts: whole lines in VMEM where they fit; a longer line streams through VMEM
// as often as its network has rounds that span more than VMEM holds.

#include <algorithm>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/tiling/kernels.h"
#include "workloads/kernels/vector_work/vector_cost.h"

namespace tpusim::kernels {

using hlo::Instruction;
using hlo::Opcode;

absl::StatusOr<isa::Kernel> BuildSortKernel(const KernelView& view, const target::Target& target) {
  const Instruction* sort = view.FindMember([](Opcode op) {
    return op == Opcode::kSort || op == Opcode::kTopk || op == Opcode::kCustomCall;
  });
  TPUSIM_CHECK(sort != nullptr, "a sort kernel without a sort");
  VectorWork work;
  for (const Instruction* m : view.members) {
    ASSIGN_OR_RETURN(const VectorWork one, VectorWorkOf(*m, target));
    work += one;
  }
  const bool full = sort->opcode() == Opcode::kSort;
  const hlo::Shape& keys = sort->operand(0)->shape();
  const int64_t d = full ? hlo::OnlyDimension(*sort) : keys.rank() - 1;
  const int64_t lines = keys.ElementCount() / std::max<int64_t>(1, keys.dims[d]);
  Bytes in(0), out(0);
  for (const KernelInput& input : view.inputs) in += BytesOf(input, target);
  for (const KernelOutput& output : view.outputs) out += BytesOf(output, target);

  // Lines side by side fill registers; they are cut in groups of one register row.
  const int64_t across =
      hlo::MinorDimension(keys) == d ? target.chip().vpu.sublanes : target.chip().vpu.lanes;
  const int64_t groups = std::max<int64_t>(1, CeilDiv(lines, across));
  const Bytes line = Bytes(CeilDiv(in.value() + out.value(), groups)) * 2;
  isa::Kernel kernel;
  int64_t cut = 1;  // pieces of one line
  while (line.value() / cut > target.ScopedVmem().value()) cut *= 2;
  const int64_t length = std::max<int64_t>(1, keys.dims[d]);
  const int64_t passes = !full ? 1 : StreamedPasses(length, CeilDiv(length, cut));
  // As many groups to a step as fit.
  int64_t steps = groups * cut;
  if (cut == 1) {
    const int64_t per_step = std::clamp<int64_t>(
        target.ScopedVmem().value() / std::max<int64_t>(1, line.value()), 1, groups);
    steps = CeilDiv(groups, per_step);
  }
  kernel.grid = {{passes, 1.0}, {steps, 1.0}};
  // number: one bit for each dimension of the grid
  const uint32_t moves = passes > 1 || steps > 1 ? 3U : 0U;
  kernel.windows = WholeWindows(view, target);
  for (isa::Window& w : kernel.windows) {
    w.bytes = Bytes(CeilDiv(w.bytes.value(), steps));
    w.moves_with = moves;
    w.buffers = steps > 1 ? 2 : 1;
  }
  kernel.block = BlockOf(work, passes * steps);
  // Rounds depend on each other.
  kernel.block.latency =
      Cycles(CeilDiv(SortRounds(length) * target.chip().vpu.latency_cycles, passes));
  return kernel;
}

}  // namespace tpusim::kernels
