#include "workloads/passes/schedule/list_order.h"

#include <gtest/gtest.h>

#include "tests/workloads/cost/small_graph.h"

namespace tpusim::passes {
namespace {

// Three products in a row, and a transfer that the last one waits for, hidden under one
// of them or under two.
TEST(ListOrder, NothingIsStartedEarlierThanItTakesToBeHidden) {
  cost::SmallGraph g;
  const int a = g.Main(cost::WorkOf(10));
  const int b = g.Main(cost::WorkOf(10), {a});
  const int start = g.Start(cost::WorkOf(10));
  const int done = g.Done(start);
  const int c = g.Main(cost::WorkOf(10), {b, done});
  std::vector<Picoseconds> in_flight(5);
  in_flight[start] = Picoseconds(10);
  EXPECT_EQ(ListOrder(g.graph(), in_flight), (cost::ScheduleOrder{a, start, b, done, c}));
  in_flight[start] = Picoseconds(20);
  EXPECT_EQ(ListOrder(g.graph(), in_flight), (cost::ScheduleOrder{start, a, b, done, c}));
}

// Nothing leads to the zeros that `late` reads beside the end of a long way.
TEST(LateConstants, ZerosAreMadeWhereTheyAreFirstRead) {
  cost::SmallGraph g;
  const int zeros = g.Main(cost::WorkOf(10));
  const int a = g.Main(cost::WorkOf(10));
  const int b = g.Main(cost::WorkOf(10), {a});
  const int late = g.Main(cost::WorkOf(10), {b, zeros});
  const cost::ScheduleOrder order{zeros, a, b, late};
  EXPECT_EQ(LateConstants(g.graph(), order), order);
  g.graph().nodes[zeros].of_constants = true;
  EXPECT_EQ(LateConstants(g.graph(), order), (cost::ScheduleOrder{a, b, zeros, late}));
}

TEST(EarlyStarts, StartsComeRightBehindWhatTheyWaitFor) {
  cost::SmallGraph g;
  const int a = g.Main(cost::WorkOf(10));
  const int b = g.Main(cost::WorkOf(10), {a});
  const int free = g.Start(cost::WorkOf(10)), of_a = g.Start(cost::WorkOf(10), {a});
  const int free_done = g.Done(free), of_a_done = g.Done(of_a);
  EXPECT_EQ(EarlyStarts(g.graph(), {a, b, free, of_a, free_done, of_a_done}),
            (cost::ScheduleOrder{a, free, of_a, b, free_done, of_a_done}));
  // Not past one of its kind.
  EXPECT_EQ(EarlyStarts(g.graph(), {a, b, of_a, free, free_done, of_a_done}),
            (cost::ScheduleOrder{a, of_a, free, b, free_done, of_a_done}));
}

TEST(EarlyStarts, NoMoreInFlightThanTheLimit) {
  cost::SmallGraph g;
  const int first = g.Start(cost::WorkOf(10), {}, cost::kGather);
  const int first_done = g.Done(first);
  const int a = g.Main(cost::WorkOf(10), {first_done});
  const int b = g.Main(cost::WorkOf(10), {a});
  const int second = g.Start(cost::WorkOf(10), {}, cost::kGather);
  const int second_done = g.Done(second);
  EXPECT_EQ(EarlyStarts(g.graph(), {first, first_done, a, b, second, second_done}),
            (cost::ScheduleOrder{first, first_done, second, a, b, second_done}));
}

}  // namespace
}  // namespace tpusim::passes
