#include "models/timing/kernel_pressure.h"

#include <gtest/gtest.h>

#include <string>

#include "configs/config.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::timing {
namespace {

configs::ChipParams PlainChip() {
  return configs::LoadConfig("v5e-1x1", {"chip.mxu.efficiency=1"}).value().chip;
}

double CyclesOf(const KernelPressure& pressure, std::string_view unit) {
  for (const UnitPressure& each : pressure.units) {
    if (each.unit == unit) return each.cycles;
  }
  return -1;
}

// Eight steps that multiply for `rows` rows of one tile per array, on windows of `bytes`.
isa::Kernel Products(int64_t rows, int64_t bytes) {
  isa::Kernel kernel;
  kernel.grid = {{8, 1.0}};
  kernel.block.mxu = {rows, 128, 512, isa::NumberFormat::kBf16, 1};
  kernel.block.load = 100;
  for (const auto kind : {isa::WindowKind::kInput, isa::WindowKind::kOutput}) {
    isa::Window window;
    window.kind = kind;
    window.bytes = Bytes(kind == isa::WindowKind::kInput ? bytes : 1024);
    window.moves_with = 1;
    kernel.windows.push_back(window);
  }
  return kernel;
}

TEST(KernelPressure, ProductsAreBoundByTheArrays) {
  const configs::ChipParams chip = PlainChip();
  const isa::Kernel kernel = Products(8192, 4096);
  const KernelPressure pressure = PressureOf(chip, kernel);
  EXPECT_EQ(pressure.bound, "MXU");
  EXPECT_EQ(pressure.time, KernelTime(chip, kernel));
  // 8192 rows stream through one tile of each of the four arrays, eight times.
  EXPECT_EQ(CyclesOf(pressure, "MXU"), 8 * 8192);
  EXPECT_DOUBLE_EQ(CyclesOf(pressure, "load"),
                   8 * 100.0 / static_cast<double>(chip.vpu.load_slots));
  EXPECT_EQ(CyclesOf(pressure, "EUP"), 0);
  EXPECT_EQ(pressure.read, Bytes(8 * 4096));
  EXPECT_EQ(pressure.written, Bytes(8 * 1024));
  EXPECT_EQ(pressure.vmem, Bytes(2 * 4096 + 2 * 1024));
  EXPECT_LE(pressure.launch + pressure.compute + pressure.stalls, pressure.time + Picoseconds(1));
  EXPECT_LT(pressure.without_compute, pressure.time);
  EXPECT_LE(pressure.without_input, pressure.time);
}

TEST(KernelPressure, LargeWindowsAreBoundByTheirDma) {
  const configs::ChipParams chip = PlainChip();
  const KernelPressure pressure = PressureOf(chip, Products(8, int64_t{8} << 20));
  EXPECT_EQ(pressure.bound, "DMA in");
  EXPECT_GT(pressure.stalls, pressure.compute);
  EXPECT_LT(pressure.without_input, pressure.without_output);
  EXPECT_LT(pressure.without_input, pressure.without_compute);
}

TEST(KernelPressure, OnlyKernelsWithArraysInHbmAreLaunched) {
  isa::Kernel kernel;
  kernel.block.valu = 1;
  EXPECT_EQ(LaunchTime(PlainChip(), kernel), Picoseconds(0));
  EXPECT_EQ(PressureOf(PlainChip(), kernel).bound, "steps");
  isa::Window window;
  window.bytes = Bytes(512);
  window.space = isa::MemorySpace::kVmem;
  kernel.windows = {window};
  EXPECT_EQ(LaunchTime(PlainChip(), kernel), Picoseconds(0));
  kernel.windows[0].space = isa::MemorySpace::kHbm;
  EXPECT_EQ(LaunchTime(PlainChip(), kernel), PlainChip().tensor_core.kernel_launch);
}

}  // namespace
}  // namespace tpusim::timing
