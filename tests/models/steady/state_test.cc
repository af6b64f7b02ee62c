// When two states are the same but for time, how many periods follow, and what they do.
#include "models/steady/state.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace tpusim::steady {
namespace {

// One of everything that a module may hold.
struct Machine {
  int64_t queue = 3;
  double rate = 1e9;
  Picoseconds arrives{110};    // periodic: 10 after the begin of a pass
  Picoseconds alarm{1000};     // once
  Picoseconds began{90};       // of an interval that every pass opens anew
  Picoseconds entered{0};      // the loop
  int64_t passes = 50;
  double bytes_left = 1e6;     // of a transfer that began with the loop
  int64_t time_left = 1'000'000;
  int64_t moved = 0;
  double carried = 0;

  void Visit(StateVisitor& visitor) {
    visitor.Same(queue);
    visitor.SameRate(rate);
    visitor.Pending(arrives);
    visitor.Pending(alarm);
    visitor.Began(began);
    visitor.Began(entered);
    visitor.Left(passes);
    visitor.LeftBytes(bytes_left);
    visitor.LeftTime(time_left);
    visitor.Counter(moved);
    visitor.Counter(carried);
  }
  // One period of 20 ps later.
  Machine Next() const {
    Machine next = *this;
    next.arrives += Picoseconds(20);
    next.began += Picoseconds(20);
    next.passes -= 1;
    next.bytes_left -= 1000;
    next.time_left -= 20;
    next.moved += 7;
    next.carried += 0.5;
    return next;
  }
};

Snapshot StateOf(Machine machine, int64_t now) {
  StateVisitor reader = StateVisitor::Read(Picoseconds(now));
  machine.Visit(reader);
  return reader.TakeSnapshot();
}

// From 100 ps to 120 ps.
int64_t Periods(const Machine& earlier, const Machine& later) {
  return PeriodsAhead(StateOf(earlier, 100), StateOf(later, 120));
}

TEST(State, WhatEndsFirstLimitsThePeriods) {
  const Machine before, after = before.Next();
  // The alarm is 880 ps away: 43 periods end before it, the 44th at it. There are 49 passes
  // left, so 48 more can begin, and bytes for 999.
  EXPECT_EQ(Periods(before, after), 43);
  Machine quiet = before;
  quiet.alarm = Picoseconds(0);  // in the past: nothing
  EXPECT_EQ(Periods(quiet, quiet.Next()), 48);
  quiet.bytes_left = 11'500;  // 10,500 later
  EXPECT_EQ(Periods(quiet, quiet.Next()), 9);
}

// A tolerance of 2 ps makes times equal that differ by as much, but no numbers.
TEST(State, MomentsMayDifferByTheTolerance) {
  const Machine before;
  const auto recurs = [&](auto change) {
    Machine after = before.Next();
    change(after);
    return FindRecurrence(StateOf(before, 100), StateOf(after, 120), Picoseconds(2));
  };
  EXPECT_TRUE(recurs([](Machine&) {}).is_exact);
  const Recurrence late = recurs([](Machine& m) {
    m.arrives += Picoseconds(1);
    m.began -= Picoseconds(2);
  });
  EXPECT_EQ(late.periods, 43);
  EXPECT_FALSE(late.is_exact);
  EXPECT_EQ(recurs([](Machine& m) { m.arrives += Picoseconds(3); }).periods, 0);
  EXPECT_EQ(recurs([](Machine& m) { m.queue += 1; }).periods, 0);
  // Another transfer began, and takes as long but for the tolerance; another loop may not have
  // other passes.
  const auto began_anew = [](Machine& m, int64_t longer) {
    m.entered += Picoseconds(20);
    m.passes += 1;
    m.bytes_left += 1000;
    m.time_left += 20 + longer;
  };
  EXPECT_EQ(recurs([&](Machine& m) { began_anew(m, 2); }).periods, 43);
  EXPECT_TRUE(recurs([&](Machine& m) { began_anew(m, 0); }).is_exact);
  const Recurrence fewer_bytes = recurs([&](Machine& m) {
    began_anew(m, 0);
    m.bytes_left -= 1;
  });
  EXPECT_EQ(fewer_bytes.periods, 43);
  EXPECT_FALSE(fewer_bytes.is_exact);
  EXPECT_EQ(recurs([&](Machine& m) { began_anew(m, 3); }).periods, 0);
  EXPECT_EQ(recurs([&](Machine& m) {
              began_anew(m, 0);
              m.passes -= 1;
            }).periods, 0);
}

TEST(State, EveryDifferenceCounts) {
  const Machine before;
  const auto differs = [&](auto change) {
    Machine after = before.Next();
    change(after);
    return Periods(before, after) == 0;
  };
  EXPECT_FALSE(differs([](Machine&) {}));
  EXPECT_TRUE(differs([](Machine& m) { m.queue = 4; }));
  EXPECT_TRUE(differs([](Machine& m) { m.rate *= 1.0001; }));
  EXPECT_FALSE(differs([](Machine& m) { m.rate *= 1 + 1e-12; }));  // a sum in another order
  EXPECT_TRUE(differs([](Machine& m) { m.arrives += Picoseconds(1); }));
  EXPECT_TRUE(differs([](Machine& m) { m.alarm += Picoseconds(1); }));
  EXPECT_TRUE(differs([](Machine& m) { m.alarm = Picoseconds(60); }));  // it has gone off
  EXPECT_TRUE(differs([](Machine& m) { m.began += Picoseconds(1); }));
  EXPECT_TRUE(differs([](Machine& m) { m.passes += 2; }));
  EXPECT_TRUE(differs([](Machine& m) { m.bytes_left += 2000; }));
  // Counters may do what they like.
  EXPECT_FALSE(differs([](Machine& m) { m.moved = -5; }));
}

TEST(State, WhatBeganAnewHasToHaveAsMuchLeft) {
  const Machine before;
  Machine after = before.Next();
  // Another execution of the loop, one period later: it has fewer passes left than the one
  // before it had.
  after.entered = before.entered + Picoseconds(20);
  EXPECT_EQ(Periods(before, after), 0);
  after.passes = before.passes;
  after.bytes_left = before.bytes_left;
  after.time_left = before.time_left;
  EXPECT_EQ(Periods(before, after), 43);
}

TEST(State, MovingIsPassingThePeriodsOneByOne) {
  const Machine before, after = before.Next();
  const Snapshot earlier = StateOf(before, 100), later = StateOf(after, 120);
  Machine moved = after, stepped = after;
  StateVisitor mover = StateVisitor::Move(earlier, later, 40);
  moved.Visit(mover);
  mover.CheckComplete();
  EXPECT_EQ(mover.by().value(), 800);
  for (int i = 0; i < 40; ++i) stepped = stepped.Next();
  EXPECT_EQ(moved.arrives.value(), stepped.arrives.value());
  EXPECT_EQ(moved.alarm.value(), 1000);
  EXPECT_EQ(moved.began.value(), stepped.began.value());
  EXPECT_EQ(moved.entered.value(), 0);
  EXPECT_EQ(moved.passes, stepped.passes);
  EXPECT_DOUBLE_EQ(moved.bytes_left, stepped.bytes_left);
  EXPECT_EQ(moved.moved, stepped.moved);
  EXPECT_DOUBLE_EQ(moved.carried, stepped.carried);
}

TEST(State, AMomentInThePastStaysWhereItWas) {
  Machine before;
  before.alarm = Picoseconds(60);
  const Machine after = before.Next();
  const Snapshot earlier = StateOf(before, 100), later = StateOf(after, 120);
  Machine moved = after;
  StateVisitor mover = StateVisitor::Move(earlier, later, 10);
  moved.Visit(mover);
  EXPECT_EQ(moved.alarm.value(), 60);
}

TEST(StateDeathTest, AModuleThatShowsSomethingElseIsAnError) {
  const Machine before, after = before.Next();
  const Snapshot earlier = StateOf(before, 100), later = StateOf(after, 120);
  StateVisitor mover = StateVisitor::Move(earlier, later, 1);
  int64_t count = 0;
  EXPECT_DEATH(mover.Counter(count), "other numbers");
  EXPECT_DEATH(mover.CheckComplete(), "fewer numbers");
}

}  // namespace
}  // namespace tpusim::steady
