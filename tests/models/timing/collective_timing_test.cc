// Closed forms and bounds with numbers that can be followed by hand: links of
// 1e9 B/s carry one byte per nanosecond.
#include "models/timing/collective_timing.h"

#include <gtest/gtest.h>

namespace tpusim::timing {
namespace {

DimensionTiming Dimension(int64_t n) { return {n, BytesPerSecond(1e9), Microseconds(1)}; }

TEST(CollectiveTimingTest, EffectiveRateDependsOnTheAxis) {
  configs::IciParams ici;
  ici.link_bytes_per_second = BytesPerSecond(4.5e10);
  ici.wrapped_efficiency = 0.5;
  ici.unwrapped_efficiency = 0.25;
  ici.pair_efficiency = 0.75;
  EXPECT_DOUBLE_EQ(EffectiveLinkRate(ici, configs::AxisLinks::kRing).value(), 2.25e10);
  EXPECT_DOUBLE_EQ(EffectiveLinkRate(ici, configs::AxisLinks::kLine).value(), 1.125e10);
  EXPECT_DOUBLE_EQ(EffectiveLinkRate(ici, configs::AxisLinks::kPair).value(), 3.375e10);
}

TEST(CollectiveTimingTest, RingAllGather) {
  // 16: 7 shards and a half one, 8 steps: 7.5 * 1000 ns + 8 us.
  EXPECT_EQ(RingAllGather(Bytes(1000), Dimension(16)), Nanoseconds(15500));
  // 5: two shards each way in two steps.
  EXPECT_EQ(RingAllGather(Bytes(1000), Dimension(5)), Nanoseconds(4000));
  // 2: two halves at once.
  EXPECT_EQ(RingAllGather(Bytes(1000), Dimension(2)), Nanoseconds(1500));
}

TEST(CollectiveTimingTest, LineAllGather) {
  EXPECT_EQ(LineAllGather(Bytes(1000), Dimension(4)), Nanoseconds(6000));
  EXPECT_EQ(LineAllGather(Bytes(1000), Dimension(1)), Picoseconds(0));
}

TEST(CollectiveTimingTest, RingAllToAll) {
  // 4: step 1 moves the neighbour's block and half the antipode's, step 2 the
  // half: 1.5 + 0.5 = 16/8 blocks.
  EXPECT_EQ(RingAllToAll(Bytes(1000), Dimension(4)), Nanoseconds(4000));
  // 5: 2 + 1 = 24/8 blocks in two steps.
  EXPECT_EQ(RingAllToAll(Bytes(1000), Dimension(5)), Nanoseconds(5000));
}

TEST(CollectiveTimingTest, LineAllToAll) {
  // 4: two and two devices, four pairs over the middle; 3 hops at most.
  EXPECT_EQ(LineAllToAll(Bytes(1000), Dimension(4)), Nanoseconds(7000));
  // 5: 2 * 3 pairs.
  EXPECT_EQ(LineAllToAll(Bytes(1000), Dimension(5)), Nanoseconds(10000));
}

TEST(CollectiveTimingTest, DirectTransfers) {
  EXPECT_EQ(DirectTransfers(Bytes(5000), BytesPerSecond(1e9), Microseconds(3)), Nanoseconds(8000));
}

// A line of 4 at 1 byte per ns: 6 directed links, the ends have one.
GroupWires LineOfFour() {
  GroupWires wires;
  wires.n = 4;
  wires.links = 6;
  wires.fewest_links = 1;
  wires.total_distance = 20;  // 2 * (3 * 1 + 2 * 2 + 1 * 3)
  wires.cuts = {{.links = 1, .members = 1}, {.links = 1, .members = 2}};
  wires.nominal = BytesPerSecond(1e9);
  return wires;
}

// A ring of 4: 8 directed links, cuts of two.
GroupWires RingOfFour() {
  GroupWires wires;
  wires.n = 4;
  wires.links = 8;
  wires.fewest_links = 2;
  wires.total_distance = 16;
  wires.cuts = {{.links = 2, .members = 1}, {.links = 2, .members = 2}};
  wires.nominal = BytesPerSecond(1e9);
  return wires;
}

TEST(CollectiveBoundTest, AllReduce) {
  // Line: 2 * 3 V / 6 = V, and V over the single link of a cut.
  EXPECT_EQ(AllReduceBound(Bytes(1200), LineOfFour()), Nanoseconds(1200));
  // Ring: 2 * 3 V / 8 = 0.75 V beats V / 2.
  EXPECT_EQ(AllReduceBound(Bytes(1200), RingOfFour()), Nanoseconds(900));
}

TEST(CollectiveBoundTest, AllGatherAndReduceScatter) {
  // Line: 3/4 V into an end. Ring: 3/4 V over two links.
  EXPECT_EQ(AllGatherBound(Bytes(1200), LineOfFour()), Nanoseconds(900));
  EXPECT_EQ(AllGatherBound(Bytes(1200), RingOfFour()), Nanoseconds(450));
  EXPECT_EQ(ReduceScatterBound(Bytes(1200), RingOfFour()), Nanoseconds(450));
}

TEST(CollectiveBoundTest, AllToAll) {
  // Blocks of 300. Line: 4 of them over the middle. Ring: 4 over two links, or 16
  // block hops over 8 links: the same.
  EXPECT_EQ(AllToAllBound(Bytes(1200), LineOfFour()), Nanoseconds(1200));
  EXPECT_EQ(AllToAllBound(Bytes(1200), RingOfFour()), Nanoseconds(600));
}

TEST(CollectiveBoundTest, Permute) {
  const BytesPerSecond rate(1e9);
  EXPECT_EQ(PermuteBound(Bytes(1000), 1, 4, 8, rate), Nanoseconds(1000));
  EXPECT_EQ(PermuteBound(Bytes(1000), 2, 4, 8, rate), Nanoseconds(500));
  EXPECT_EQ(PermuteBound(Bytes(1000), 1, 32, 8, rate), Nanoseconds(4000));
  EXPECT_EQ(PermuteBound(Bytes(1000), 0, 0, 8, rate), Picoseconds(0));
}

TEST(CollectiveBoundTest, AGroupOfOneHasNone) {
  GroupWires wires;
  wires.nominal = BytesPerSecond(1e9);
  EXPECT_EQ(AllReduceBound(Bytes(1000), wires), Picoseconds(0));
  EXPECT_EQ(AllGatherBound(Bytes(1000), wires), Picoseconds(0));
  EXPECT_EQ(AllToAllBound(Bytes(1000), wires), Picoseconds(0));
}

TEST(CollectiveTimingTest, LocalCopiesReadAndWrite) {
  configs::ChipParams chip;
  chip.tensor_cores = 1;
  chip.devices = 1;
  chip.clock = Hertz(1e9);
  chip.hbm.bytes_per_second = BytesPerSecond(2e9);
  chip.hbm.efficiency = 0.5;
  chip.dma.start_latency = Nanoseconds(100);
  chip.vpu.load_slots = 2;
  chip.vpu.store_slots = 1;
  EXPECT_EQ(LocalCopy(chip, isa::MemorySpace::kHbm, Bytes(1000), 2), Nanoseconds(2100));
  EXPECT_EQ(LocalCopy(chip, isa::MemorySpace::kHbm, Bytes(1000), 1), Nanoseconds(1100));
  // One register of 4096 B per cycle.
  EXPECT_EQ(LocalCopy(chip, isa::MemorySpace::kVmem, Bytes(40960), 2), Nanoseconds(110));
  // The two cores of a megacore copy half each.
  chip.tensor_cores = 2;
  EXPECT_EQ(LocalCopy(chip, isa::MemorySpace::kVmem, Bytes(40960), 2), Nanoseconds(105));
}

}  // namespace
}  // namespace tpusim::timing
