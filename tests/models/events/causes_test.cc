#include "models/events/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tpusim::events {
namespace {

using ::testing::ElementsAre;
using Ref = Causes::Ref;

Picoseconds Ps(int64_t n) { return Picoseconds(n); }

std::vector<std::string> PathOf(const Causes& causes) {
  std::vector<std::string> path;
  for (const Causes::PathPart& part : causes.CriticalPath()) {
    path.push_back(std::to_string(part.op) + ":" + std::to_string(static_cast<int>(part.spent)) +
                   ":" + std::to_string(part.time.value()));
  }
  return path;
}

std::string Row(int op, Spent spent, int time) {
  return std::to_string(op) + ":" + std::to_string(static_cast<int>(spent)) + ":" +
         std::to_string(time);
}

TEST(CausesTest, OneThreadSpendsTheWholeStep) {
  Causes causes;
  Ref main = causes.Start();
  causes.Spend(main, Ps(10), 1, Spent::kLatency);
  causes.Spend(main, Ps(30), 1, Spent::kMxu);
  causes.Spend(main, Ps(35), 2, Spent::kMxu);
  causes.Spend(main, Ps(35), 3, Spent::kHbm);   // no time
  causes.Spend(main, Ps(40), -1, Spent::kMxu);  // of operation 2
  causes.Finished(main);
  EXPECT_THAT(PathOf(causes), ElementsAre(Row(1, Spent::kMxu, 20), Row(1, Spent::kLatency, 10),
                                          Row(2, Spent::kMxu, 10)));
}

TEST(CausesTest, WhoWaitsTakesOnTheChainOfWhoLetItGo) {
  Causes causes;
  Ref main = causes.Start();
  causes.Spend(main, Ps(10), 1, Spent::kMxu);
  Ref transfer = main;  // begins at 10
  causes.Spend(main, Ps(20), 2, Spent::kVpu);
  causes.Spend(transfer, Ps(50), 3, Spent::kIci);
  causes.SetCurrent(transfer);
  main = causes.current();  // has waited from 20 to 50
  causes.Spend(main, Ps(60), 4, Spent::kHbm);
  causes.Finished(transfer);
  causes.Finished(main);
  // Operation 2 was hidden under the transfer.
  EXPECT_THAT(PathOf(causes), ElementsAre(Row(1, Spent::kMxu, 10), Row(3, Spent::kIci, 40),
                                          Row(4, Spent::kHbm, 10)));
}

TEST(CausesTest, ChainsThatNobodyHoldsAreForgotten) {
  Causes causes;
  Ref main = causes.Start(), other = causes.Start();
  const int64_t before = causes.moments();
  for (int i = 1; i <= 1000; ++i) {
    causes.Spend(other, Ps(i), i, Spent::kMxu);
    causes.Spend(main, Ps(i), 1, Spent::kMxu);  // goes on: one moment
    other = main;
  }
  EXPECT_LE(causes.moments(), before + 1001);
  other = main = Ref();
  EXPECT_EQ(causes.moments(), before);
}

// Shows the causes of all threads.
void Show(std::vector<Ref*> threads, steady::CauseVisitor& to) {
  auto visitor = steady::StateVisitor::Read(Ps(0));
  visitor.ShowCausesTo(&to);
  for (Ref* thread : threads) thread->Visit(visitor);
}

std::shared_ptr<Causes::Marks> Mark(Causes& causes, std::vector<Ref*> threads) {
  auto marks = std::make_shared<Causes::Marks>(causes);
  Show(std::move(threads), *marks);
  return marks;
}

TEST(CausesTest, RepetitionsAreWalkedThrough) {
  // Two devices hand work to each other: in a period of 10 each computes for 4 and sends for 6 to
  // the other, from which it goes on. `idle` does nothing.
  Causes causes;
  Ref a = causes.Start(), b = causes.Start(), idle = causes.Start();
  causes.Spend(a, Ps(5), 0, Spent::kLatency);
  causes.Spend(b, Ps(5), 0, Spent::kLatency);
  const auto period = [&](int64_t from) {
    causes.Spend(a, Ps(from + 4), 1, Spent::kMxu);
    causes.Spend(b, Ps(from + 4), 2, Spent::kVpu);
    causes.Spend(a, Ps(from + 10), 3, Spent::kIci);
    causes.Spend(b, Ps(from + 10), 4, Spent::kIci);
    std::swap(a, b);
  };
  const auto earlier = Mark(causes, {&a, &b, &idle});
  period(5);
  const auto later = Mark(causes, {&a, &b, &idle});
  // 7 more periods in one go, then one by hand.
  Show({&a, &b, &idle}, *causes.Repeat(earlier, later, Ps(10), 7, nullptr, 0));
  EXPECT_EQ(causes.At(a), Ps(85));
  EXPECT_EQ(causes.At(idle), Ps(0));
  period(85);
  causes.Finished(a);
  EXPECT_EQ(causes.At(a), Ps(95));
  // Nine periods, alternately by both: `a` was `b` in the last, so five of them are b's.
  EXPECT_THAT(PathOf(causes), ElementsAre(Row(0, Spent::kLatency, 5), Row(1, Spent::kMxu, 16),
                                          Row(2, Spent::kVpu, 20), Row(3, Spent::kIci, 24),
                                          Row(4, Spent::kIci, 30)));
}

// The state was moved by 7 periods of 10, though operation 2 took 7 and not 6 in this one: of the
// 77 of the chain, 7 are not there.
TEST(CausesTest, RepetitionsThatAreNearlyTheSameEndWhereTheStateIsMovedTo) {
  Causes causes;
  Ref main = causes.Start(), idle = causes.Start();
  const auto earlier = Mark(causes, {&main, &idle});
  causes.Spend(main, Ps(4), 1, Spent::kMxu);
  causes.Spend(main, Ps(11), 2, Spent::kIci);
  const auto later = Mark(causes, {&main, &idle});
  Show({&main, &idle}, *causes.Repeat(earlier, later, Ps(10), 7, nullptr, 0, /*is_exact=*/false));
  EXPECT_EQ(causes.At(main), Ps(81));
  EXPECT_EQ(causes.At(idle), Ps(0));
  causes.Finished(main);
  EXPECT_THAT(PathOf(causes),
              ElementsAre(Row(1, Spent::kMxu, 4 + 28), Row(2, Spent::kIci, 7 + 42)));
}

TEST(CausesTest, RepetitionsInsideOfRepetitions) {
  Causes causes;
  Ref main = causes.Start();
  // An outer period of 100: 10 of operation 1, then 9 passes of 10 of operation 2, of which 7 are
  // passed over.
  const auto outer = [&] {
    const Picoseconds at = causes.At(main);
    causes.Spend(main, at + Ps(10), 1, Spent::kHbm);
    causes.Spend(main, at + Ps(20), 2, Spent::kMxu);
    const auto first = Mark(causes, {&main});
    causes.Spend(main, at + Ps(30), 2, Spent::kMxu);
    const auto second = Mark(causes, {&main});
    Show({&main}, *causes.Repeat(first, second, Ps(10), 7, nullptr, 0));
    EXPECT_EQ(causes.At(main), at + Ps(100));
  };
  const auto earlier = Mark(causes, {&main});
  outer();
  const auto later = Mark(causes, {&main});
  Show({&main}, *causes.Repeat(earlier, later, Ps(100), 1'000'000, nullptr, 0));
  outer();
  causes.Finished(main);
  EXPECT_THAT(PathOf(causes),
              ElementsAre(Row(1, Spent::kHbm, 10'000'020), Row(2, Spent::kMxu, 90'000'180)));
}

}  // namespace
}  // namespace tpusim::events
