#include "models/timing/kernel_timing.h"

#include <gtest/gtest.h>

#include <string>

#include "configs/config.h"
#include "models/timing/kernel_time.h"

namespace tpusim::timing {
namespace {

// A chip whose arrays keep their rate up.
configs::ChipParams Chip(const std::string& slice) {
  return configs::LoadConfig(slice, {"chip.mxu.efficiency=1"}).value().chip;
}

configs::ChipParams V5e() { return Chip("v5e-1x1"); }

TEST(TimeBlock, WeightTilesAreSharedByTheArrays) {
  // [512,2048] x [2048,256] in bf16: 16 x 2 = 32 weight tiles, 8 for each of the
  // four arrays, 512 rows each at one row per cycle: 4096 cycles.
  isa::Block block;
  block.mxu = {512, 2048, 256, isa::NumberFormat::kBf16, 1};
  EXPECT_EQ(TimeBlock(V5e(), block).mxu, Cycles(4096));
  // int32 takes ten passes.
  block.mxu.format = isa::NumberFormat::kInt32;
  EXPECT_EQ(TimeBlock(V5e(), block).mxu, Cycles(40960));
}

TEST(TimeBlock, FewRowsWaitForTheWeights) {
  // 8 rows stream in 8 cycles, but the next weight tile takes 128 / 4 to load: 4
  // tiles on four arrays take 32 cycles.
  isa::Block block;
  block.mxu = {8, 128, 512, isa::NumberFormat::kBf16, 1};
  EXPECT_EQ(TimeBlock(V5e(), block).mxu, Cycles(32));
}

TEST(TimeBlock, TheFullestSlotDecides) {
  configs::ChipParams chip = V5e();
  chip.vpu.alus_per_lane = 4;
  chip.vpu.eup_slots = 1;
  chip.vpu.eup_cycles_per_vreg = 1;
  isa::Block block;
  block.valu = 4000;  // 1000 cycles
  block.eup = 1500;   // 1500 cycles
  EXPECT_EQ(TimeBlock(chip, block).vpu, Cycles(1500));
  block.eup = 500;
  EXPECT_EQ(TimeBlock(chip, block).vpu, Cycles(1000));
}

TEST(TimeBlock, BothCoresOfAMegacoreShareABlock) {
  // The 32 tiles above on 2 x 4 arrays: 4 each of 512 rows, 2048 cycles. 4096
  // vector operations on 2 x 4 ALUs: 512.
  const configs::ChipParams chip = Chip("v5p-1x1x1");
  isa::Block block;
  block.mxu = {512, 2048, 256, isa::NumberFormat::kBf16, 1};
  block.valu = 4096;
  EXPECT_EQ(TimeBlock(chip, block).mxu, Cycles(2048));
  EXPECT_EQ(TimeBlock(chip, block).vpu, Cycles(512));
}

TEST(TimeBlock, LargeArraysTakeTwoRowsPerCycle) {
  // v6e: [512,2048] x [2048,256] is 8 tiles of 256x256, 4 for each of two arrays,
  // 256 cycles each for 512 rows: 1024, a quarter of v5e's.
  const configs::ChipParams chip = Chip("v6e-1x1");
  isa::Block block;
  block.mxu = {512, 2048, 256, isa::NumberFormat::kBf16, 1};
  EXPECT_EQ(TimeBlock(chip, block).mxu, Cycles(1024));
  block.mxu.format = isa::NumberFormat::kInt8;
  EXPECT_EQ(TimeBlock(chip, block).mxu, Cycles(512));
}

TEST(TimeBlock, ArraysThatDoNotKeepUpTheirRateTakeLonger) {
  // The 32 tiles above, 4096 cycles at the full rate, at 0.8 of it.
  configs::ChipParams chip = V5e();
  chip.mxu.efficiency = 0.8;
  isa::Block block;
  block.mxu = {512, 2048, 256, isa::NumberFormat::kBf16, 1};
  EXPECT_EQ(TimeBlock(chip, block).mxu, Cycles(5120));
  // Loading weights is stretched alike: 8 tiles per array, 32 / 0.8 cycles each.
  block.mxu.m = 8;
  EXPECT_EQ(TimeBlock(chip, block).mxu, Cycles(320));
}

isa::Window HbmWindow(isa::WindowKind kind, int64_t bytes, uint32_t moves_with) {
  isa::Window w;
  w.kind = kind;
  w.bytes = Bytes(bytes);
  w.moves_with = moves_with;
  return w;
}

TEST(Traffic, AWindowIsFetchedAgainWhenItsIndexComesBack) {
  // Grid 3 x 4; the first window moves with the outer dimension: 3 times; the
  // second with the inner one: on every one of 12 steps; the output with both.
  isa::Kernel kernel;
  kernel.grid = {{3, 1.0}, {4, 1.0}};
  kernel.windows = {HbmWindow(isa::WindowKind::kInput, 100, 1),
                    HbmWindow(isa::WindowKind::kInput, 10, 2),
                    HbmWindow(isa::WindowKind::kOutput, 1, 3)};
  const KernelTraffic traffic = TrafficOf(kernel);
  EXPECT_EQ(traffic.read, Bytes(3 * 100 + 12 * 10));
  EXPECT_EQ(traffic.written, Bytes(12));
}

TEST(Traffic, LastBlocksMayBePartial) {
  isa::Kernel kernel;
  kernel.grid = {{3, 0.5}};
  kernel.windows = {HbmWindow(isa::WindowKind::kInput, 100, 1)};
  EXPECT_EQ(TrafficOf(kernel).read, Bytes(250));
}

TEST(KernelTime, OneStepIsLaunchFetchComputeWrite) {
  const configs::ChipParams chip = V5e();
  isa::Kernel kernel;
  kernel.windows = {HbmWindow(isa::WindowKind::kInput, 1 << 20, 0),
                    HbmWindow(isa::WindowKind::kOutput, 1 << 19, 0)};
  kernel.block.valu = 4 * 1500;  // 1500 cycles = 1 us
  const double rate = HbmRate(chip).value();
  const Picoseconds expected = chip.tensor_core.kernel_launch + chip.dma.start_latency * 2 +
                               FromSeconds((1 << 20) / rate) + FromSeconds((1 << 19) / rate) +
                               StepTime(chip, kernel.block);
  EXPECT_EQ(KernelTime(chip, kernel), expected);
}

}  // namespace
}  // namespace tpusim::timing
