#include "models/timing/kernel_timing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace tpusim::timing {
namespace {

int64_t CeilToInt(double x) { return static_cast<int64_t>(std::ceil(x - 1e-9)); }

bool IsInteger(isa::NumberFormat format) {
  return format == isa::NumberFormat::kInt8 || format == isa::NumberFormat::kInt4 ||
         format == isa::NumberFormat::kInt32;
}

// Steady state of a product on the weight-stationary arrays.
//
// A weight tile is rows x columns of the right-hand side. While one tile multiplies (m left-hand
// rows stream through, lhs_rows_per_cycle at a time), the next one is pushed into the staging copy,
// weight_rows_per_cycle at a time; a tile therefore occupies its array for the longer of the two.
// Rows are fed in groups of 8 sublanes. A format that takes several passes streams the rows (and
// pushes the weights) once per pass; a format with less than one pass per product packs several
// rows into one.
//
// Clocks that give way to power, and whatever else keeps the arrays from their rate all
// the time, stretch both alike (efficiency). Products of integers keep the rate: the measured ones
// of int32 on v5e do (V05c).
//
// The device's arrays, on a megacore those of both cores, share the work either by weight tiles or
// by rows, whichever is shorter: few tiles and many rows want the second.
int64_t MxuSteadyCycles(const configs::ChipParams& chip, const isa::MxuWork& work) {
  const configs::MxuParams& mxu = chip.mxu;
  const int64_t arrays = chip.MxusPerDevice();
  const double passes = FormatPasses(mxu, work.format);
  const int64_t tiles = work.batch * CeilDiv(work.k, mxu.rows) * CeilDiv(work.n, mxu.columns);
  // Weights come in registers of `lanes` columns; those that a tile has not are not written.
  // (Schedules of the TPU compiler for v6e: a tile of 128 columns is loaded in half of the time
  // of one of 256.)
  const int64_t columns = CeilDiv(work.n, mxu.columns) * mxu.columns;
  const int64_t needed = std::min(RoundUp(work.n, chip.vpu.lanes), columns);
  const double load = static_cast<double>(mxu.rows) / mxu.weight_rows_per_cycle *
                      static_cast<double>(needed) / static_cast<double>(columns);
  const auto tile_cycles = [&](int64_t rows) {
    const double stream = static_cast<double>(RoundUp(rows, 8)) / mxu.lhs_rows_per_cycle;
    // Fewer than one pass shortens the stream; the weights of a narrow format
    // are narrower too. More passes repeat both.
    return passes * std::max(stream, load);
  };
  const double by_tiles = static_cast<double>(CeilDiv(tiles, arrays)) * tile_cycles(work.m);
  const double by_rows = static_cast<double>(tiles) * tile_cycles(CeilDiv(work.m, arrays));
  return CeilToInt(std::min(by_tiles, by_rows) / SustainedShare(mxu, work.format));
}

// Share of a grid that an index combination of the dimensions in `mask` covers
// on average: below one when last blocks are partial.
double AverageFraction(const isa::Kernel& kernel, uint32_t mask) {
  double fraction = 1.0;
  for (size_t d = 0; d < kernel.grid.size(); ++d) {
    if (((mask >> d) & 1U) == 0) continue;
    const isa::GridDim& dim = kernel.grid[d];
    fraction *= dim.FullSteps() / static_cast<double>(dim.count);
  }
  return fraction;
}

// Does a window move when dimension `j` steps and all deeper ones wrap round?
bool MovesOnStepOf(const isa::Kernel& kernel, uint32_t mask, size_t j) {
  for (size_t d = j; d < kernel.grid.size(); ++d) {
    if (((mask >> d) & 1U) != 0 && (d == j || kernel.grid[d].count > 1)) return true;
  }
  return false;
}

}  // namespace

double SustainedShare(const configs::MxuParams& mxu, isa::NumberFormat format) {
  return IsInteger(format) ? 1 : mxu.efficiency;
}

double FormatPasses(const configs::MxuParams& mxu, isa::NumberFormat format) {
  switch (format) {
    case isa::NumberFormat::kBf16:
      return mxu.passes_bf16;
    case isa::NumberFormat::kF32:
      return mxu.passes_f32;
    case isa::NumberFormat::kF32High:
      return mxu.passes_f32_high;
    case isa::NumberFormat::kF32Highest:
      return mxu.passes_f32_highest;
    case isa::NumberFormat::kInt8:
      return mxu.passes_int8;
    case isa::NumberFormat::kInt4:
      return mxu.passes_int4;
    case isa::NumberFormat::kFp8:
      return mxu.passes_fp8;
    case isa::NumberFormat::kInt32:
      return mxu.passes_int32;
  }
  return mxu.passes_bf16;
}

SlotCycles SlotsOf(const configs::ChipParams& chip, const isa::Block& block) {
  const configs::VpuParams& vpu = chip.vpu;
  // The cores of a megacore share the vector work of a block.
  const double cores = static_cast<double>(chip.CoresPerDevice());
  const auto cycles = [&](int64_t operations, double each, int64_t slots) {
    return operations == 0
               ? 0
               : static_cast<double>(operations) * each / static_cast<double>(slots) / cores;
  };
  return {cycles(block.valu, 1, vpu.alus_per_lane),
          cycles(block.eup, vpu.eup_cycles_per_vreg, vpu.eup_slots),
          cycles(block.xlu, vpu.xlu_cycles_per_vreg, vpu.xlu_count),
          cycles(block.load, 1, vpu.load_slots), cycles(block.store, 1, vpu.store_slots)};
}

BlockCycles TimeBlock(const configs::ChipParams& chip, const isa::Block& block) {
  BlockCycles cycles;
  if (block.stated > Picoseconds(0)) {
    cycles.total = ToCycles(block.stated, chip.clock);
    (block.stated_products ? cycles.mxu : cycles.vpu) = cycles.total;
    return cycles;
  }
  if (block.mxu.m > 0) {
    cycles.mxu = Cycles(MxuSteadyCycles(chip, block.mxu));
    // The first weight tile is pushed while the block before drains; nothing
    // hides the way of the last row through the array.
    cycles.mxu_fill = Cycles(chip.mxu.result_latency_cycles);
  }
  const SlotCycles slots = SlotsOf(chip, block);
  const double fullest = std::max({slots.valu, slots.eup, slots.xlu, slots.load, slots.store});
  cycles.vpu = Cycles(CeilToInt(fullest));
  cycles.total = std::max({cycles.mxu, cycles.vpu, block.scalar}) + cycles.mxu_fill + block.latency;
  return cycles;
}

Picoseconds XluTime(const configs::ChipParams& chip, int64_t operations) {
  const double cycles = static_cast<double>(operations) * chip.vpu.xlu_cycles_per_vreg /
                        static_cast<double>(chip.vpu.xlu_count);
  return ToTime(Cycles(static_cast<int64_t>(std::ceil(cycles))), chip.clock);
}

Picoseconds StepTime(const configs::ChipParams& chip, const isa::Block& block) {
  if (block.stated > Picoseconds(0)) return block.stated;
  return ToTime(TimeBlock(chip, block).total, chip.clock) + chip.tensor_core.grid_step_overhead;
}

Picoseconds LaunchTime(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  const bool moves = std::ranges::any_of(
      kernel.windows, [](const isa::Window& w) { return IsRated(w.space); });
  if (!moves) return Picoseconds(0);
  Picoseconds launch = chip.tensor_core.kernel_launch;
  if (kernel.block.mxu.m == 0) return launch;
  for (const isa::Window& w : kernel.windows) {
    if (w.space == isa::MemorySpace::kHbm) launch += chip.tensor_core.product_window;
  }
  return launch;
}

KernelTraffic TrafficOf(const isa::Kernel& kernel) {
  KernelTraffic traffic;
  for (const isa::Window& w : kernel.windows) {
    if (!IsRated(w.space)) continue;
    int64_t moves = 1, outer = 1;
    for (size_t j = 0; j < kernel.grid.size(); ++j) {
      if (MovesOnStepOf(kernel, w.moves_with, j)) moves += outer * (kernel.grid[j].count - 1);
      outer *= kernel.grid[j].count;
    }
    const double bytes = static_cast<double>(moves) * static_cast<double>(w.bytes.value()) *
                         AverageFraction(kernel, w.moves_with);
    const Bytes rounded(static_cast<int64_t>(std::llround(bytes)));
    traffic.both_ways.In(w.space) += rounded;
    if (w.space != isa::MemorySpace::kHbm) continue;
    (w.kind == isa::WindowKind::kInput ? traffic.read : traffic.written) += rounded;
  }
  return traffic;
}

Bytes WindowBytes(const isa::Kernel& kernel) {
  Bytes sum{0};
  for (const isa::Window& window : kernel.windows) {
    if (window.space != isa::MemorySpace::kVmem) sum += window.bytes * window.buffers;
  }
  return sum;
}

}  // namespace tpusim::timing
