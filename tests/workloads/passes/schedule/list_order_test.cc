#include "workloads/passes/schedule/list_order.h"

#include <gtest/gtest.h>

#include "tests/workloads/passes/schedule/small_graph.h"

namespace tpusim::passes {
namespace {

// Three products in a row, and a transfer that the last one waits for, hidden under one
// of them or under two.
TEST(ListOrder, NothingIsStartedEarlierThanItTakesToBeHidden) {
  SmallGraph g;
  const int a = g.Main(WorkOf(10));
  const int b = g.Main(WorkOf(10), {a});
  const int start = g.Start(WorkOf(10));
  const int done = g.Done(start);
  const int c = g.Main(WorkOf(10), {b, done});
  std::vector<Picoseconds> in_flight(5);
  in_flight[start] = Picoseconds(10);
  EXPECT_EQ(ListOrder(g.graph(), in_flight), (ScheduleOrder{a, start, b, done, c}));
  in_flight[start] = Picoseconds(20);
  EXPECT_EQ(ListOrder(g.graph(), in_flight), (ScheduleOrder{start, a, b, done, c}));
}

TEST(EarlyStarts, StartsComeRightBehindWhatTheyWaitFor) {
  SmallGraph g;
  const int a = g.Main(WorkOf(10));
  const int b = g.Main(WorkOf(10), {a});
  const int free = g.Start(WorkOf(10)), of_a = g.Start(WorkOf(10), {a});
  const int free_done = g.Done(free), of_a_done = g.Done(of_a);
  EXPECT_EQ(EarlyStarts(g.graph(), {a, b, free, of_a, free_done, of_a_done}),
            (ScheduleOrder{a, free, of_a, b, free_done, of_a_done}));
  // Not past one of its kind.
  EXPECT_EQ(EarlyStarts(g.graph(), {a, b, of_a, free, free_done, of_a_done}),
            (ScheduleOrder{a, of_a, free, b, free_done, of_a_done}));
}

TEST(EarlyStarts, NoMoreInFlightThanTheLimit) {
  SmallGraph g;
  const int first = g.Start(WorkOf(10), {}, kGather);
  const int first_done = g.Done(first);
  const int a = g.Main(WorkOf(10), {first_done});
  const int b = g.Main(WorkOf(10), {a});
  const int second = g.Start(WorkOf(10), {}, kGather);
  const int second_done = g.Done(second);
  EXPECT_EQ(EarlyStarts(g.graph(), {first, first_done, a, b, second, second_done}),
            (ScheduleOrder{first, first_done, second, a, b, second_done}));
}

}  // namespace
}  // namespace tpusim::passes
