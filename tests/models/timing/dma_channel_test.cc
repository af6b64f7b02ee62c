// A channel by hand: reads wait 500 ps, writes 300 ps, a read behind another transfer of
// its kernel 40 ps more.
#include "models/timing/dma_channel.h"

#include <gtest/gtest.h>

namespace tpusim::timing {
namespace {

DmaChannel<Transfer> Channel() {
  configs::DmaParams params;
  params.start_latency = Picoseconds(500);
  params.write_start_latency = Picoseconds(300);
  params.turnaround = Picoseconds(40);
  return DmaChannel<Transfer>(params);
}

Transfer Read(uint64_t number) {
  Transfer transfer;
  transfer.bytes = Bytes(100);
  transfer.number = number;
  transfer.follows = number > 1;
  return transfer;
}

Transfer Write(uint64_t number) {
  Transfer transfer = Read(number);
  transfer.write = true;
  return transfer;
}

TEST(DmaChannel, DataBeginAfterTheLatencyAndTheTransferBefore) {
  auto channel = Channel();
  channel.Issue(Picoseconds(1000), Read(1));
  channel.Issue(Picoseconds(1000), Read(2));
  channel.Issue(Picoseconds(1000), Write(3));
  EXPECT_EQ(channel.NextBegin(), Picoseconds(1500));
  channel.Begin(Picoseconds(1500));
  EXPECT_EQ(channel.End(Picoseconds(1600)).number, 1);
  EXPECT_EQ(channel.NextBegin(), Picoseconds(1640));  // the turnaround of a read
  channel.Begin(Picoseconds(1640));
  EXPECT_EQ(channel.End(Picoseconds(1700)).number, 2);
  EXPECT_EQ(channel.NextBegin(), Picoseconds(1700));  // none of a write
  channel.Begin(Picoseconds(1700));
  EXPECT_EQ(channel.End(Picoseconds(1750)).number, 3);
  EXPECT_TRUE(channel.empty());
  channel.Issue(Picoseconds(1760), Write(4));
  EXPECT_EQ(channel.NextBegin(), Picoseconds(2060));
}

TEST(DmaChannel, AReadOfAnotherKernelNeedsNoTurnaround) {
  auto channel = Channel();
  channel.Issue(Picoseconds(0), Read(1));
  channel.Begin(Picoseconds(500));
  channel.Issue(Picoseconds(100), Read(1));
  channel.End(Picoseconds(900));
  EXPECT_EQ(channel.NextBegin(), Picoseconds(900));
}

TEST(DmaChannel, MovesInTimeWithAllThatIsOutstanding) {
  auto channel = Channel();
  channel.Issue(Picoseconds(0), Read(1));
  channel.Issue(Picoseconds(400), Read(2));
  channel.Begin(Picoseconds(500));
  channel.Count(Picoseconds(550), 25);
  auto taken = channel.Take();
  EXPECT_TRUE(channel.empty());
  EXPECT_FALSE(channel.moving());
  taken.Shift(Picoseconds(1000), 3);
  ASSERT_TRUE(taken.moving());
  EXPECT_EQ(taken.began(), Picoseconds(1500));
  EXPECT_EQ(taken.counted(), Picoseconds(1550));
  EXPECT_EQ(taken.first().bytes, 25);
  EXPECT_EQ(taken.queue()[1].ready, Picoseconds(1900));
  EXPECT_EQ(taken.queue()[1].transfer.step, 2);
  taken.End(Picoseconds(1700));
  EXPECT_EQ(taken.NextBegin(), Picoseconds(1900));
}

TEST(DmaChannel, StatesAreEqualRelativeToNow) {
  const auto state = [](Picoseconds now, Picoseconds began) {
    auto channel = Channel();
    channel.Issue(began - Picoseconds(500), Read(2));
    channel.Begin(began);
    channel.Issue(now - Picoseconds(50), Read(3));
    auto reader = steady::StateVisitor::Read(now);
    channel.Visit(reader);
    return reader.TakeSnapshot();
  };
  const auto first = state(Picoseconds(1000), Picoseconds(900));
  EXPECT_EQ(steady::PeriodsAhead(first, state(Picoseconds(1700), Picoseconds(1600))),
            steady::kUnlimited);
  // The moving transfer began earlier: less of it is left.
  EXPECT_EQ(steady::PeriodsAhead(first, state(Picoseconds(1700), Picoseconds(1590))), 0);
}

TEST(DmaChannel, KeepsItsOrderHoweverManyHaveEnded) {
  auto channel = Channel();
  uint64_t issued = 0, ended = 0;
  for (int64_t n = 0; n < 100; ++n) {
    const Picoseconds now(1000 * n);
    channel.Issue(now, Write(++issued));
    if (n % 3 == 0) channel.Issue(now, Write(++issued));
    if (n % 3 == 1) continue;
    while (channel.queue().size() > 2) {
      channel.Begin(channel.NextBegin());
      EXPECT_EQ(channel.End(now).number, ++ended);
    }
  }
  EXPECT_EQ(issued - ended, channel.queue().size());
}

}  // namespace
}  // namespace tpusim::timing
