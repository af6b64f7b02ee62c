#include "workloads/kernels/tiling/ragged_steps.h"

#include "configs/units.h"
#include "models/timing/kernel_steps.h"

namespace tpusim::kernels {

void StepThroughGroups(const RaggedTiling& tiling, const configs::ChipParams& chip, size_t rows,
                       size_t depth, isa::Kernel* kernel) {
  const uint32_t along_rows = 1U << rows;
  const bool whole = kernel->grid[depth].count == 1;
  const auto steps = static_cast<double>(tiling.steps);
  const double of_tiles = static_cast<double>(tiling.tiles) / steps;
  const double of_groups = static_cast<double>(tiling.groups) / steps;
  for (isa::Window& w : kernel->windows) {
    const bool by_rows = (w.moves_with & along_rows) != 0;
    const bool kept = whole || w.kind == isa::WindowKind::kOutput;
    if (kept) w.bytes = timing::Scaled(w.bytes, by_rows ? of_tiles : of_groups);
    w.moves_with |= along_rows;
    if (tiling.steps > 1) w.buffers = 2;
  }
  kernel->grid[rows] = {.count = tiling.steps, .last_fraction = 1};
  // The number of each row, two comparisons, their conjunction, and the choice.
  constexpr int64_t kOfMask = 5;  // number: operations on a register of the tile
  const isa::MxuWork& mxu = kernel->block.mxu;
  kernel->block.valu += kOfMask * CeilDiv(mxu.m, chip.vpu.sublanes) *
                        CeilDiv(mxu.n, chip.vpu.lanes) / kernel->grid[depth].count;
}

}  // namespace tpusim::kernels
