#include "models/timing/memory_bytes.h"

#include <gtest/gtest.h>

#include "configs/memory.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::timing {
namespace {

using isa::MemorySpace;

// HBM 1e12 * 0.5 B/s, CMEM 2e12 B/s.
configs::ChipParams Params() {
  configs::ChipParams chip;
  chip.tensor_cores = chip.devices = 1;
  chip.clock = Hertz(1e9);
  chip.hbm.bytes_per_second = BytesPerSecond(1e12);
  chip.hbm.efficiency = 0.5;
  chip.cmem.bytes = Bytes(1000);
  chip.cmem.bytes_per_second = BytesPerSecond(2e12);
  return chip;
}

isa::Window WindowOf(MemorySpace space, int64_t bytes, uint32_t moves_with = 0) {
  isa::Window window;
  window.space = space;
  window.bytes = Bytes(bytes);
  window.moves_with = moves_with;
  return window;
}

TEST(MemoryBytes, ACopyAccessesBothEnds) {
  const auto accessed = [](MemorySpace from, MemorySpace to) {
    const MemoryBytes bytes = AccessedBy({from, to, Bytes(10)});
    return std::pair(bytes.hbm().value(), bytes.In(isa::MemorySpace::kCmem).value());
  };
  EXPECT_EQ(accessed(MemorySpace::kHbm, MemorySpace::kVmem), std::pair(10L, 0L));
  EXPECT_EQ(accessed(MemorySpace::kHbm, MemorySpace::kCmem), std::pair(10L, 10L));
  EXPECT_EQ(accessed(MemorySpace::kVmem, MemorySpace::kCmem), std::pair(0L, 10L));
  EXPECT_EQ(accessed(MemorySpace::kCmem, MemorySpace::kCmem), std::pair(0L, 20L));
  EXPECT_EQ(accessed(MemorySpace::kVmem, MemorySpace::kVmem), std::pair(0L, 0L));
}

TEST(MemoryBytes, WhatReadsHbmOrCmemHasTheLatencyOfARead) {
  EXPECT_FALSE(IsWrite({MemorySpace::kHbm, MemorySpace::kVmem, Bytes(1)}));
  EXPECT_FALSE(IsWrite({MemorySpace::kHbm, MemorySpace::kCmem, Bytes(1)}));
  EXPECT_FALSE(IsWrite({MemorySpace::kCmem, MemorySpace::kVmem, Bytes(1)}));
  EXPECT_TRUE(IsWrite({MemorySpace::kVmem, MemorySpace::kCmem, Bytes(1)}));
  EXPECT_TRUE(IsWrite({MemorySpace::kCmem, MemorySpace::kHbm, Bytes(1)}));
}

TEST(MemoryBytes, TheSlowerMemoryDecides) {
  const configs::ChipParams chip = Params();
  const auto rate = [&](int64_t hbm, int64_t cmem, int64_t bytes) {
    return MoveRate(chip, {Bytes(hbm), Bytes(cmem)}, Bytes(bytes)).value();
  };
  EXPECT_DOUBLE_EQ(rate(100, 0, 100), 5e11);
  EXPECT_DOUBLE_EQ(rate(0, 100, 100), 2e12);
  EXPECT_DOUBLE_EQ(rate(100, 100, 100), 5e11);  // HBM to CMEM
  EXPECT_DOUBLE_EQ(rate(0, 200, 100), 1e12);    // within CMEM
  // Windows side by side: 100 B of HBM take 200 ps, 400 B of CMEM too: 500 B in 200 ps.
  EXPECT_DOUBLE_EQ(rate(100, 400, 500), 2.5e12);
  // 100 B of HBM 200 ps, 200 B of CMEM 100 ps: 300 B in 200 ps.
  EXPECT_DOUBLE_EQ(rate(100, 200, 300), 1.5e12);
}

TEST(MemoryBytes, DevicesOfAChipHaveAPartEach) {
  configs::ChipParams chip = Params();
  chip.devices = chip.tensor_cores = 2;
  EXPECT_EQ(configs::MemoryOf(isa::MemorySpace::kCmem).rate(chip).value(), 1e12);
  EXPECT_EQ(configs::MemoryOf(MemorySpace::kCmem).capacity(chip), Bytes(500));
}

TEST(MemoryBytes, TrafficAndLaunchTellHbmFromCmem) {
  // A product of 4 steps: the left operand in CMEM is read once (1000 B), the right one
  // from HBM every step (4 x 300 B), the result written to HBM every step (4 x 50 B).
  // Its launch sets up the two windows of HBM.
  configs::ChipParams chip = Params();
  chip.mxu.count = 1;
  chip.mxu.rows = chip.mxu.columns = 128;
  chip.tensor_core.product_window = Nanoseconds(10);
  isa::Kernel kernel;
  kernel.grid = {{4, 1.0}};
  kernel.windows = {WindowOf(MemorySpace::kCmem, 1000), WindowOf(MemorySpace::kHbm, 300, 1),
                    WindowOf(MemorySpace::kHbm, 50, 1)};
  kernel.windows[2].kind = isa::WindowKind::kOutput;
  kernel.block.mxu.m = kernel.block.mxu.k = kernel.block.mxu.n = 128;
  const KernelTraffic traffic = TrafficOf(kernel);
  EXPECT_EQ(traffic.read, Bytes(1200));
  EXPECT_EQ(traffic.written, Bytes(200));
  EXPECT_EQ(traffic.both_ways.In(isa::MemorySpace::kCmem), Bytes(1000));
  EXPECT_EQ(LaunchTime(chip, kernel), Nanoseconds(20));
}

TEST(MemoryBytes, AKernelIsBoundByWhicheverIsLonger) {
  // One step without compute: 600 B of CMEM (300 ps) beside 100 B of HBM (200 ps).
  configs::ChipParams chip = Params();
  isa::Kernel kernel;
  kernel.windows = {WindowOf(MemorySpace::kCmem, 600), WindowOf(MemorySpace::kHbm, 100)};
  EXPECT_EQ(KernelTime(chip, kernel), Picoseconds(300));
  EXPECT_EQ(KernelTimeBound(chip, kernel), Picoseconds(299));  // a picosecond for rounding
  kernel.windows[1].bytes = Bytes(400);                        // 800 ps
  EXPECT_EQ(KernelTime(chip, kernel), Picoseconds(800));
}

}  // namespace
}  // namespace tpusim::timing
