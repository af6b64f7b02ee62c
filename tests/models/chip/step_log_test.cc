// An iteration of two steps, and what is told of those that repeat it.
//
//   ps        100      110    120      140     150
//   entry   origin   block  step end  block  step end    period 50, two steps
//                     8 ps             10 ps
#include "models/chip/step_log.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/models/test_chip.h"

namespace tpusim::chip {
namespace {

using Kind = StepLog::EventKind;

struct Logged {
  StepLog log;
  StepLog::LoggedIteration iteration;

  Logged() {
    log.Add(Kind::kBlockBegan, Picoseconds(110), Picoseconds(8));
    log.Add(Kind::kStepEnded, Picoseconds(120));
    log.Add(Kind::kBlockBegan, Picoseconds(140), Picoseconds(10));
    log.Add(Kind::kStepEnded, Picoseconds(150));
    iteration.begin = 0;
    iteration.end = 4;
    iteration.origin = Picoseconds(100);
    iteration.period = Picoseconds(50);
    iteration.steps = 2;
    iteration.work.compute = Picoseconds(18);
  }
};

TEST(StepLog, IterationsFollowOneAnother) {
  const Logged l;
  StepLog::Cursor cursor(l.log, l.iteration, Picoseconds(1000));
  const std::pair<Kind, int64_t> expected[] = {{Kind::kBlockBegan, 1010},
                                               {Kind::kStepEnded, 1020},
                                               {Kind::kBlockBegan, 1040},
                                               {Kind::kStepEnded, 1050},
                                               {Kind::kBlockBegan, 1060}};
  for (const auto& [kind, at] : expected) {
    const auto event = cursor.Next(Picoseconds(1069), /*everything=*/false);
    ASSERT_TRUE(event.has_value()) << at;
    EXPECT_EQ(event->kind, kind);
    EXPECT_EQ(event->at, Picoseconds(at));
  }
  // Not before its time.
  EXPECT_FALSE(cursor.Next(Picoseconds(1069), false).has_value());
  EXPECT_EQ(cursor.Next(Picoseconds(1070), false)->at, Picoseconds(1070));
}

// Two iterations and 45 ps: 2 x 18, the first block of 8, and 5 of the second.
TEST(StepLog, ComputeIsThatOfWholeIterationsAndOfTheRunningOne) {
  const Logged l;
  EXPECT_EQ(l.log.ComputeUntil(l.iteration, Picoseconds(1000), Picoseconds(1145)),
            Picoseconds(2 * 18 + 8 + 5));
  EXPECT_EQ(l.log.ComputeUntil(l.iteration, Picoseconds(1000), Picoseconds(1010)), Picoseconds(0));
}

// Three iterations stand in the log as one entry at 150, and end at 300.
TEST(StepLog, RepeatedIterationsAreOneEventOrAll) {
  Logged l;
  l.log.AddRepeated(Picoseconds(150), l.iteration, 3);
  StepLog::LoggedIteration outer;
  outer.begin = 4;
  outer.end = 5;
  outer.origin = Picoseconds(150);
  outer.period = Picoseconds(150);
  StepLog::Cursor cursor(l.log, outer, Picoseconds(2000));
  // Two of them have ended by 2120; the third is told step by step.
  const auto sum = cursor.Next(Picoseconds(2120), /*everything=*/false);
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(sum->kind, Kind::kRepeated);
  EXPECT_EQ(sum->at, Picoseconds(2100));
  EXPECT_EQ(sum->steps, 4);
  EXPECT_EQ(sum->work.compute, Picoseconds(36));
  EXPECT_EQ(cursor.Next(Picoseconds(2120), false)->at, Picoseconds(2110));
  StepLog::Cursor whole(l.log, outer, Picoseconds(2000));
  EXPECT_EQ(whole.Next(Picoseconds(2120), /*everything=*/true)->at, Picoseconds(2010));
  EXPECT_EQ(l.log.ComputeUntil(outer, Picoseconds(2000), Picoseconds(2120)),
            Picoseconds(2 * 18 + 8));
}

TEST(StepLog, EntriesAreCountedFromTheFirstEver) {
  Logged l;
  l.log.DropBefore(1);
  EXPECT_EQ(l.log.size(), 4u);
  EXPECT_EQ(l.log.kept(), 3u);
  l.log.DropBefore(3);
  EXPECT_EQ(l.log.size(), 4u);
  EXPECT_EQ(l.log.kept(), 1u);
  l.iteration.begin = 3;
  l.log.Shift(Picoseconds(1000));
  l.iteration.origin += Picoseconds(1000);
  StepLog::Cursor cursor(l.log, l.iteration, Picoseconds(0));
  EXPECT_EQ(cursor.Next(Picoseconds(100), false)->at, Picoseconds(50));
}

}  // namespace
}  // namespace tpusim::chip
