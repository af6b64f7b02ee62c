#include "models/chip/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

using ::testing::HasSubstr;

configs::ChipParams Params() {
  configs::ChipParams params;
  params.tensor_cores = 2;
  params.devices = 1;
  params.clock = Hertz(1e9);
  params.vmem.bytes = Bytes(100);
  params.hbm.bytes = Bytes(1000);
  params.hbm.reserved_bytes = Bytes(200);
  params.hbm.bytes_per_second = BytesPerSecond(1e12);
  params.hbm.efficiency = 0.5;
  return params;
}

using configs::MemoryOf;
using isa::MemorySpace;

TEST(Memory, VmemBelongsToAllCoresOfADevice) {
  events::Fluid fluid("fluid");
  Memory vmem("vmem", MemoryOf(MemorySpace::kVmem), fluid, Params());
  EXPECT_EQ(vmem.resource(), std::nullopt);
  EXPECT_EQ(vmem.capacity(), Bytes(200));
  EXPECT_TRUE(vmem.Alloc("a", Bytes(150)).ok());
  EXPECT_THAT(Message(vmem.Alloc("b", Bytes(51))),
              HasSubstr("b needs 51 bytes, but 150 of 200 are in use: 1 too many"));
  EXPECT_TRUE(vmem.Alloc("b", Bytes(50)).ok());
  EXPECT_TRUE(vmem.Free("a", Bytes(150)).ok());
  EXPECT_EQ(vmem.live(), Bytes(50));
  EXPECT_EQ(vmem.peak(), Bytes(200));
  EXPECT_THAT(Message(vmem.Free("b", Bytes(51))), HasSubstr("only 50 are in use"));
}

TEST(Memory, WindowsCountAsOftenAsTheyAreBuffered) {
  isa::Kernel kernel;
  kernel.windows.resize(3);
  kernel.windows[0].bytes = Bytes(10);
  kernel.windows[1].bytes = Bytes(7);
  kernel.windows[1].buffers = 1;
  kernel.windows[2].bytes = Bytes(1000);  // there already
  kernel.windows[2].space = isa::MemorySpace::kVmem;
  EXPECT_EQ(timing::WindowBytes(kernel), Bytes(27));
}

TEST(Memory, HbmServesItsEffectiveRateAndLeavesTheReserve) {
  events::Fluid fluid("fluid");
  Memory hbm("hbm", MemoryOf(MemorySpace::kHbm), fluid, Params());
  EXPECT_EQ(fluid.network().Capacity(*hbm.resource()), 5e11);
  EXPECT_EQ(hbm.capacity(), Bytes(800));
  EXPECT_TRUE(hbm.Alloc("a", Bytes(800)).ok());
  EXPECT_THAT(Message(hbm.Alloc("b", Bytes(1))), HasSubstr("b needs 1 bytes"));
  EXPECT_TRUE(hbm.Free("a", Bytes(800)).ok());
  EXPECT_EQ(hbm.live(), Bytes(0));
  EXPECT_EQ(hbm.peak(), Bytes(800));
}

struct HbmBench : testing::Bench {
  explicit HbmBench(sc_core::sc_module_name name = "bench") : Bench(name) {
    chip.hbm.efficiency = 0.5;
    hbm.emplace("hbm", MemoryOf(MemorySpace::kHbm), fluid, chip);
  }
  std::optional<Memory> hbm;
  testing::Note read, write;
};

// Half of 1e12 B/s is reached, 2 ps a byte, for reads and writes together.
TEST(Memory, ReadsAndWritesShareIt) {
  HbmBench bench;
  bench.Elaborate();
  bench.Flow(*bench.hbm->resource(), 1000, &bench.read);
  bench.Flow(*bench.hbm->resource(), 500, &bench.write);
  // 4 ps a byte each until 500 of both have moved, then 500 of the first alone.
  EXPECT_TRUE(bench.HappensAt(2000, [&] { return bench.write.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(3000, [&] { return bench.read.times.size() == 1; }));
}

TEST(Memory, CmemIsDividedAmongTheDevicesOfAChip) {
  configs::ChipParams params = Params();
  params.devices = 2;
  params.cmem.bytes = Bytes(1000);
  params.cmem.bytes_per_second = BytesPerSecond(4e12);
  events::Fluid fluid("fluid");
  Memory cmem("cmem", MemoryOf(MemorySpace::kCmem), fluid, params);
  EXPECT_EQ(cmem.capacity(), Bytes(500));
  EXPECT_EQ(fluid.network().Capacity(*cmem.resource()), 2e12);
}

TEST(Memory, AChipMayHaveNoCmem) {
  events::Fluid fluid("fluid");
  Memory cmem("cmem", MemoryOf(MemorySpace::kCmem), fluid, Params());
  EXPECT_EQ(cmem.resource(), std::nullopt);
  EXPECT_FALSE(cmem.Alloc("a", Bytes(1)).ok());
}

}  // namespace
}  // namespace tpusim::chip
