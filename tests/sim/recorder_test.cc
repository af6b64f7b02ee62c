#include "sim/recorder.h"

#include <gtest/gtest.h>

namespace tpusim::sim {
namespace {

TEST(BusyUnion, OverlapCountsOnce) {
  BusyUnion busy;
  busy.Add(Picoseconds(10), Picoseconds(20));
  busy.Add(Picoseconds(15), Picoseconds(30));  // 10 more
  busy.Add(Picoseconds(16), Picoseconds(18));  // inside
  busy.Add(Picoseconds(40), Picoseconds(45));
  EXPECT_EQ(busy.Total(), Picoseconds(25));
}

TEST(BusyUnion, KnowsHowMuchLiesInThePast) {
  BusyUnion busy;
  busy.Add(Picoseconds(10), Picoseconds(30));
  EXPECT_EQ(busy.UpTo(Picoseconds(10)), Picoseconds(0));
  EXPECT_EQ(busy.UpTo(Picoseconds(25)), Picoseconds(15));
  EXPECT_EQ(busy.UpTo(Picoseconds(35)), Picoseconds(20));
  busy.Add(Picoseconds(40), Picoseconds(50));
  EXPECT_EQ(busy.UpTo(Picoseconds(41)), Picoseconds(21));
}

}  // namespace
}  // namespace tpusim::sim
