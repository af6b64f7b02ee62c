#include "models/timing/reduce_timing.h"

#include <gtest/gtest.h>

namespace tpusim::timing {
namespace {

configs::ChipParams ReduceChip() {
  configs::ChipParams chip;
  chip.tensor_cores = 1;
  chip.devices = 1;
  chip.clock = Hertz(1e9);
  chip.vpu.alus_per_lane = 4;
  chip.hbm.bytes_per_second = BytesPerSecond(1e12);
  chip.ici.reduce_window = Bytes(8192);
  return chip;
}

TEST(ReduceTiming, VpuRates) {
  EXPECT_EQ(VregOpsPerSecond(ReduceChip()), 4e9);
  configs::ChipParams two_cores = ReduceChip();
  two_cores.tensor_cores = 2;
  EXPECT_EQ(VregOpsPerSecond(two_cores), 8e9);
  // One addition per register of 1024 elements, whatever they were in memory.
  EXPECT_DOUBLE_EQ(VregOpsPerByte(ReduceChip(), {4, 1}), 1.0 / 4096);
  EXPECT_DOUBLE_EQ(VregOpsPerByte(ReduceChip(), {2, 1}), 1.0 / 2048);
  // Unpacking and packing around it: three operations.
  EXPECT_DOUBLE_EQ(VregOpsPerByte(ReduceChip(), {2, 3}), 3.0 / 2048);
  // 64 bit fills two registers.
  EXPECT_DOUBLE_EQ(VregOpsPerByte(ReduceChip(), {8, 1}), 2.0 / 8192);
}

// Two SparseCores per device of 16 tiles with 8 lanes add 256 elements per cycle.
TEST(ReduceTiming, SparseCores) {
  configs::ChipParams chip = ReduceChip();
  chip.devices = 2;
  chip.sparse_core.count = 4;
  chip.sparse_core.tiles = 16;
  chip.sparse_core.lanes = 8;
  EXPECT_EQ(AddsPerSecond(chip), 256e9);
  EXPECT_DOUBLE_EQ(AddsPerByte({4, 1, true}), 1.0 / 4);
  EXPECT_DOUBLE_EQ(AddsPerByte({2, 1, true}), 1.0 / 2);
  EXPECT_DOUBLE_EQ(AddsPerByte({8, 1, true}), 1.0 / 4);  // two lanes of 32 bit each
  // 8192 B are 2048 additions: 8 ns; then 8192 ps to write.
  EXPECT_EQ(ReduceTail(chip, {4, 1, true}, Bytes(1'000'000)).value(), 16192);
}

TEST(ReduceTiming, TailIsOneWindow) {
  // Add 8192 B: 2 registers at 4 a ns = 500 ps; write 8192 B = 8192 ps.
  EXPECT_EQ(ReduceTail(ReduceChip(), {4, 1}, Bytes(1'000'000)).value(), 8692);
  // A message of half a window.
  EXPECT_EQ(ReduceTail(ReduceChip(), {4, 1}, Bytes(4096)).value(), 4346);
  // Into VMEM nothing is written back.
  EXPECT_EQ(ReduceTail(ReduceChip(), {4, 1}, Bytes(1'000'000), false).value(), 500);
}

}  // namespace
}  // namespace tpusim::timing
