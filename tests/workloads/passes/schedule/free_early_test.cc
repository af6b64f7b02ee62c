#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/cost/small_graph.h"
#include "workloads/passes/schedule/list_order.h"

namespace tpusim::passes {
namespace {

using testing::ElementsAre;

// Four kernels of 10 ps; what the first makes goes to the host in 8 ps and comes back for the
// last. A list scheduler leaves the copy there just in front of the one back.
TEST(FreeEarly, CopiesToTheHostDoNotWaitUntilTheyAreWantedBack) {
  cost::SmallGraph g;
  const int a = g.Main(cost::WorkOf(10));
  const int b = g.Main(cost::WorkOf(10), {a});
  const int c = g.Main(cost::WorkOf(10), {b});
  const int out = g.Start(cost::WorkOf(8), {a}, cost::kToHost);
  const int there = g.Done(out);
  const int in = g.Start(cost::WorkOf(8), {there}, cost::kFromHost);
  const int here = g.Done(in);
  const int d = g.Main(cost::WorkOf(10), {c, here});
  // Twice 8 ps are over behind c, 20 ps later.
  EXPECT_THAT(FreeEarly(g.graph(), {a, b, c, out, there, in, here, d}),
              ElementsAre(a, out, b, c, there, in, here, d));
  // What comes back stays where it was.
  EXPECT_THAT(FreeEarly(g.graph(), {a, b, out, there, in, c, here, d}),
              ElementsAre(a, out, b, there, in, c, here, d));
}

// A limit of one lets the second copy start when the first is over, and nothing runs before what it
// waits for, in whichever order the copies were.
TEST(FreeEarly, KeepsToTheLimit) {
  cost::SmallGraph g;
  g.graph().limits[cost::kToHost] = 1;
  const int a = g.Main(cost::WorkOf(10));
  const int b = g.Main(cost::WorkOf(10), {a});
  const int c = g.Main(cost::WorkOf(10), {b});
  const int d = g.Main(cost::WorkOf(10), {c});
  const int first = g.Start(cost::WorkOf(5), {a}, cost::kToHost);
  const int first_done = g.Done(first);
  const int second = g.Start(cost::WorkOf(5), {b}, cost::kToHost);
  const int second_done = g.Done(second);
  EXPECT_THAT(FreeEarly(g.graph(), {a, b, c, d, second, second_done, first, first_done}),
              ElementsAre(a, first, b, first_done, second, c, second_done, d));
}

}  // namespace
}  // namespace tpusim::passes
