#include "models/chip/sync_flags.h"

#include <gtest/gtest.h>

namespace tpusim::chip {
namespace {

struct Counter : FlagListener {
  int reached = 0;
  void FlagReached() override { ++reached; }
};

TEST(SyncFlags, ARaisedFlagIsTakenAtOnce) {
  SyncFlags flags("flags", 2);
  Counter stream;
  flags.Raise(1, 1);
  flags.Raise(1, 1);
  flags.Raise(1, 1);
  EXPECT_TRUE(flags.Take(1, 2, &stream));
  EXPECT_EQ(flags.count(1), 1);
  EXPECT_EQ(flags.count(0), 0);
  EXPECT_EQ(stream.reached, 0);
}

TEST(SyncFlags, AWaiterGoesOnWhenItsCountIsReached) {
  SyncFlags flags("flags", 1);
  Counter stream;
  EXPECT_FALSE(flags.Take(0, 2, &stream));
  flags.Raise(0, 1);
  EXPECT_EQ(stream.reached, 0);
  flags.Raise(0, 1);
  EXPECT_EQ(stream.reached, 1);
  EXPECT_EQ(flags.count(0), 0);
  flags.Raise(0, 1);  // no stream waits any more
  EXPECT_EQ(stream.reached, 1);
  EXPECT_EQ(flags.count(0), 1);
}

TEST(SyncFlags, WaitersOfAFlagAreServedInOrder) {
  SyncFlags flags("flags", 1);
  Counter first, second;
  EXPECT_FALSE(flags.Take(0, 2, &first));
  EXPECT_FALSE(flags.Take(0, 1, &second));
  flags.Raise(0, 1);
  EXPECT_EQ(second.reached, 0) << "a smaller wait overtook an older one";
  flags.Raise(0, 1);
  EXPECT_EQ(first.reached, 1);
  EXPECT_EQ(second.reached, 0);
  flags.Raise(0, 1);
  EXPECT_EQ(second.reached, 1);
}

TEST(SyncFlags, FlagsAreIndependent) {
  SyncFlags flags("flags", 2);
  Counter a, b;
  EXPECT_FALSE(flags.Take(0, 1, &a));
  EXPECT_FALSE(flags.Take(1, 1, &b));
  flags.Raise(1, 1);
  EXPECT_EQ(a.reached, 0);
  EXPECT_EQ(b.reached, 1);
}

}  // namespace
}  // namespace tpusim::chip
