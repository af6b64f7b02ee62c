#include <gtest/gtest.h>

#include "tests/workloads/cost/small_graph.h"
#include "workloads/cost/schedule_graph.h"

namespace tpusim::cost {
namespace {

TEST(Replay, WhatSharesNothingRunsSideBySide) {
  SmallGraph g;
  Work transfer = WorkOf(80, 0, 1, 40);
  transfer.latency = Picoseconds(30);
  const int start = g.Start(transfer);
  const int product = g.Main(WorkOf(100, 0.5, 0, 400));
  const int done = g.Done(start);
  const ReplayResult result = Replay(g.graph(), {start, product, done});
  // 30 + 80 of the transfer, of which the product hides 100.
  EXPECT_EQ(result.work.time, Picoseconds(110));
  EXPECT_EQ(result.in_flight[start], Picoseconds(110));
  EXPECT_EQ(result.stall[start], Picoseconds(10));
  // The link is busy for 80 of 110, HBM half for 100.
  EXPECT_NEAR(result.work.share[kLinkResource], 80.0 / 110, 1e-9);
  EXPECT_NEAR(result.work.share[kHbmResource], 50.0 / 110, 1e-9);
}

TEST(Replay, TransfersOnOneLinkHaveHalfOfItEach) {
  SmallGraph g;
  const int first = g.Start(WorkOf(100, 0, 1, 40)), second = g.Start(WorkOf(60, 0, 1, 40));
  const int first_done = g.Done(first), second_done = g.Done(second);
  const ReplayResult result = Replay(g.graph(), {first, second, first_done, second_done});
  // At half of its speed the second takes 120; then 40 of the first are left.
  EXPECT_EQ(result.in_flight[second], Picoseconds(120));
  EXPECT_EQ(result.in_flight[first], Picoseconds(160));
  EXPECT_EQ(result.work.time, Picoseconds(160));
}

// HBM carries 800, the product wants all of it, the transfer 40 over a link and, as it
// reads and writes, 80 of HBM: what is slow anyway has its rate, the product the rest.
TEST(Replay, AFullMemoryIsSharedByRates) {
  SmallGraph g;
  const int start = g.Start(WorkOf(100, 0.1, 1, 40));
  const int product = g.Main(WorkOf(90, 1, 0, 800));
  const int done = g.Done(start);
  const ReplayResult result = Replay(g.graph(), {start, product, done});
  EXPECT_EQ(result.in_flight[start], Picoseconds(100));
  // 90 at nine tenths of its speed.
  EXPECT_EQ(result.work.time, Picoseconds(100));
  EXPECT_EQ(result.stall[start], Picoseconds(0));
}

TEST(Replay, AGatherBesideNoProductIsExecutedWhole) {
  SmallGraph g;
  const int start = g.Start(WorkOf(100), {}, kGather);
  const int other = g.Main(WorkOf(50));
  const int product = g.Main(WorkOf(50), {}, /*carries_gathers=*/true);
  const int done = g.Done(start);
  EXPECT_EQ(Replay(g.graph(), {start, product, other, done}).work.time, Picoseconds(100));
  EXPECT_EQ(Replay(g.graph(), {start, other, done, product}).work.time, Picoseconds(200));
}

}  // namespace
}  // namespace tpusim::cost
