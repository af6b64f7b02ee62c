// CMEM of one device: copies, windows, who shares what. Times in comments are in
// microseconds; see pod_testing.h for the chip. Its CMEM moves 4e12 B/s: a megabyte in
// 0.25.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/in_child.h"
#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests
using isa::MemorySpace;

configs::Config CmemConfig() {
  configs::Config config = TestConfig();
  config.chip.cmem.bytes = Bytes(100'000'000);
  config.chip.cmem.bytes_per_second = BytesPerSecond(4e12);
  return config;
}

// In a process of its own; picoseconds.
int64_t TimeOf(const isa::SharedBody& body) {
  return InChild(CmemConfig(), MakeProgram({body}), {}).times.at(0);
}

Timeline RunOnce(const isa::SharedBody& body, const std::vector<int32_t>& record = {}) {
  return MustSimulate(CmemConfig(), MakeProgram({body}), record);
}

isa::Window InCmem(isa::Window window) {
  window.space = MemorySpace::kCmem;
  return window;
}

isa::SharedBody InBackground(const isa::Dma& dma, const isa::Kernel& kernel) {
  return Share(isa::Start{{isa::StreamKind::kCollective, 0}, 0, Share(dma)}, kernel, isa::Done{0});
}

TEST(PodCmem, CopiesTakeLatencyAndTheSlowerEnd) {
  // From HBM and back 0.5 + 1 each, HBM decides. To VMEM 0.5 + 0.25. Within CMEM it
  // reads and writes: 0.5 + 0.5.
  const Bytes megabyte(1'000'000);
  const Timeline timeline =
      RunOnce(Share(isa::Dma{MemorySpace::kHbm, MemorySpace::kCmem, megabyte},
                    isa::Dma{MemorySpace::kCmem, MemorySpace::kHbm, megabyte},
                    isa::Dma{MemorySpace::kCmem, MemorySpace::kVmem, megabyte},
                    isa::Dma{MemorySpace::kCmem, MemorySpace::kCmem, megabyte}));
  EXPECT_EQ(timeline.step_time, Nanoseconds(1500 + 1500 + 750 + 1000));
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(2'000'000));
  EXPECT_EQ(timeline.devices[0].moved.In(isa::MemorySpace::kCmem), Bytes(5'000'000));
}

TEST(PodCmem, WindowsOfItsOperandsSpareHbm) {
  // Launch 2 + latency 0.5 + 1 MB of CMEM 0.25 + compute 1 + latency 0.5 + 0.5 MB to
  // HBM 0.5.
  isa::Kernel kernel;
  kernel.windows = {InCmem(Input(1'000'000, 0)), Output(500'000, 0)};
  kernel.block = Compute(1000);
  const Timeline timeline = RunOnce(Share(kernel));
  EXPECT_EQ(timeline.step_time, Nanoseconds(4750));
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(500'000));
  EXPECT_EQ(timeline.devices[0].moved.In(isa::MemorySpace::kCmem), Bytes(1'000'000));
}

TEST(PodCmem, HbmAndCmemServeAStepSideBySide) {
  // 1 MB of HBM takes 1 and 2 MB of CMEM take 0.5 in the same time: 2 + 0.5 + 1 +
  // compute 1.
  isa::Kernel kernel;
  kernel.windows = {Input(1'000'000, 0), InCmem(Input(2'000'000, 0))};
  kernel.block = Compute(1000);
  EXPECT_EQ(TimeOf(Share(kernel)), 4'500'000);
  // With 8 MB, 2, CMEM decides. VMEM holds 16 MB: one buffer each.
  kernel.windows[1] = InCmem(Input(8'000'000, 0, /*buffers=*/1));
  EXPECT_EQ(TimeOf(Share(kernel)), 5'500'000);
}

TEST(PodCmem, APrefetchFromHbmDoesNotSlowOperandsInCmem) {
  // The copy moves 0.5-3.5 through HBM and a quarter of CMEM. The window's 1 MB needs
  // the other three quarters at most: from 2.5 on at 3e12, 1/3. Compute 1: 3.8333.
  isa::Kernel kernel;
  kernel.windows = {InCmem(Input(1'000'000, 0))};
  kernel.block = Compute(1000);
  const isa::Dma copy{MemorySpace::kHbm, MemorySpace::kCmem, Bytes(3'000'000)};
  EXPECT_EQ(TimeOf(InBackground(copy, kernel)), 2'500'000 + 333'333 + 1'000'000);
  // The same operand in HBM shares its rate: both at half of it from 2.5 to 4.5, then
  // compute until 5.5.
  kernel.windows = {Input(1'000'000, 0)};
  EXPECT_EQ(TimeOf(InBackground(copy, kernel)), 5'500'000);
}

TEST(PodCmem, TwoReadersShareIt) {
  // A copy out of CMEM to VMEM has moved 8 of its 9 MB when the window joins at 2.5; both
  // at 2e12 until the copy's last megabyte has gone, as the window's: 0.5. Compute 1.
  isa::Kernel kernel;
  kernel.windows = {InCmem(Input(1'000'000, 0))};
  kernel.block = Compute(1000);
  const isa::Dma copy{MemorySpace::kCmem, MemorySpace::kVmem, Bytes(9'000'000)};
  EXPECT_EQ(TimeOf(InBackground(copy, kernel)), 4'000'000);
}

TEST(PodCmem, LiveBytesAreCounted) {
  isa::PodProgram program = MakeProgram({nullptr});
  program.info.buffers = {{"%a", Bytes(60'000'000)}, {"%b", Bytes(50'000'000)}};
  const auto cmem = MemorySpace::kCmem;
  program.programs[0] = Share(isa::Alloc{cmem, 0}, Compute(1000), isa::Free{cmem, 0},
                              isa::Alloc{cmem, 1}, isa::Free{cmem, 1});
  const Timeline timeline = MustSimulate(CmemConfig(), program, {0});
  EXPECT_EQ(timeline.devices[0].peak_live.In(isa::MemorySpace::kCmem), Bytes(60'000'000));
  EXPECT_EQ(timeline.devices[0].peak_live.hbm(), Bytes(0));
  std::vector<double> live;
  for (const CounterSample& sample : timeline.recording.Samples()) {
    ASSERT_EQ(sample.counter, Counter::kLive);
    ASSERT_EQ(sample.lane, 1);
    live.push_back(sample.value);
  }
  EXPECT_THAT(live, ::testing::ElementsAre(6e7, 0, 5e7, 0));
}

TEST(PodCmem, OverflowNamesTheBuffer) {
  isa::PodProgram program = MakeProgram({nullptr});
  program.info.buffers = {{"%a", Bytes(60'000'000)}, {"%b", Bytes(50'000'000)}};
  const auto cmem = MemorySpace::kCmem;
  program.programs[0] = Share(isa::Alloc{cmem, 0}, isa::Alloc{cmem, 1});
  EXPECT_EQ(SimulationError(CmemConfig(), program),
            "pod.chip0.cmem: %b needs 50000000 bytes, but 60000000 of 100000000 are in use: "
            "10000000 too many");
}

TEST(PodCmem, ItsBandwidthIsACounter) {
  const Timeline timeline =
      RunOnce(Share(isa::Dma{MemorySpace::kHbm, MemorySpace::kCmem, Bytes(1'000'000)}), {0});
  std::vector<double> rates;
  for (const CounterSample& sample : timeline.recording.Samples()) {
    if (sample.counter == Counter::kBandwidth && sample.lane == 1 &&
        sample.time >= Nanoseconds(500)) {
      rates.push_back(sample.value);
    }
  }
  EXPECT_THAT(rates, ::testing::ElementsAre(1e12, 0));
}

TEST(PodCmem, CopiesBesideTheMainStreamAreCountedWhereTheyRun) {
  isa::PodProgram program = MakeProgram({nullptr});
  const int32_t op = AddOp(program, "copy");
  const isa::SharedBody copy =
      Share(isa::Label{op, true}, isa::Dma{MemorySpace::kHbm, MemorySpace::kCmem, Bytes(1'000'000)},
            isa::Label{op, false});
  program.programs[0] =
      Share(isa::Start{{isa::StreamKind::kCollective, 0}, 0, copy}, Compute(9000), isa::Done{0});
  const Timeline timeline = MustSimulate(CmemConfig(), program);
  EXPECT_EQ(timeline.step_time, Microseconds(9));
  EXPECT_EQ(timeline.ops[op].count, 1);
  EXPECT_EQ(timeline.ops[op].total, Nanoseconds(1500));
  EXPECT_EQ(timeline.ops[op].hbm_bytes, Bytes(1'000'000));
}

}  // namespace
}  // namespace tpusim::sim
