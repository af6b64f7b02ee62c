#include "workloads/passes/schedule/choose_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/cost/small_graph.h"

namespace tpusim::passes {
namespace {

// A chain of products, and two transfers over one link that the last product waits
// for: alone they are hidden under one product each, together they take two, which only
// early starts allow.
TEST(ChooseOrder, SharedLinksMakeTransfersStartEarlier) {
  cost::SmallGraph g;
  const int a = g.Main(cost::WorkOf(100));
  const int b = g.Main(cost::WorkOf(100), {a});
  const int x = g.Start(cost::WorkOf(100, 0, 1, 40)), y = g.Start(cost::WorkOf(100, 0, 1, 40));
  const int x_done = g.Done(x), y_done = g.Done(y);
  const int c = g.Main(cost::WorkOf(100), {b, x_done, y_done});
  const ChosenOrder chosen = ChooseOrder(g.graph());
  EXPECT_EQ(chosen.work.time, Picoseconds(300));
  const auto at = [&](int n) {
    return std::find(chosen.order.begin(), chosen.order.end(), n) - chosen.order.begin();
  };
  EXPECT_LT(std::min(at(x), at(y)), at(a) + 1);
  EXPECT_EQ(at(c), 6);
}

// Links that get faster never make the chosen order longer: a ring of two directions,
// a product of 100 per step of what has arrived from either side.
TEST(ChooseOrder, FasterLinksDoNotLengthen) {
  Picoseconds before = Picoseconds::Max();
  for (const int64_t transfer : {400, 300, 230, 200, 170, 140, 110, 100, 90, 70, 50}) {
    cost::SmallGraph g;
    int left = g.Main(cost::WorkOf(10)), right = g.Main(cost::WorkOf(10)), total = left;
    for (int step = 0; step < 4; ++step) {
      total = g.Main(cost::WorkOf(100, 0.3, 0, 300), {left, right, total});
      left = g.Done(g.Start(cost::WorkOf(transfer, 0.1, 1, 40), {left}));
      right = g.Done(g.Start(cost::WorkOf(transfer, 0.1, 1, 40), {right}));
    }
    g.Main(cost::WorkOf(100), {left, right, total});
    const Picoseconds now = ChooseOrder(g.graph()).work.time;
    EXPECT_LE(now, before) << transfer;
    before = now;
  }
}

}  // namespace
}  // namespace tpusim::passes
