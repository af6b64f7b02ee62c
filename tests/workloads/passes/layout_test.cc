// Orders of dimensions: classes of values that share one, and reshapes that keep it. What the pass
// makes of programs is in layout/*.hlo.
#include <gtest/gtest.h>

#include <vector>

#include "tests/workloads/passes/small_module.h"
#include "workloads/passes/layout/order_classes.h"

namespace tpusim::passes {
namespace {

TEST(OrderClasses, RememberWhichDimensionIsWhich) {
  OrderClasses classes;
  const int32_t a = classes.Add(3), b = classes.Add(3), c = classes.Add(3);
  // b = transpose(a, {2, 0, 1}): dimension 0 of b is dimension 2 of a.
  ASSERT_TRUE(classes.Unite(b, a, {2, 0, 1}));
  ASSERT_TRUE(classes.UniteEqual(c, b));
  EXPECT_EQ(classes.Find(a), classes.Find(c));
  // a with its dimension 1 fastest, then 0: c has its dimension 2 fastest, then 1.
  const Dims of_class = classes.OfClass(a, {1, 0, 2});
  EXPECT_EQ(classes.OfValue(c, of_class), (Dims{2, 1, 0}));
  // The same again is no news; something else is refused.
  EXPECT_TRUE(classes.Unite(c, a, {2, 0, 1}));
  EXPECT_FALSE(classes.UniteEqual(c, a));
}

TEST(SameBytes, RunsOfAReshape) {
  const std::vector<ReshapeRun> runs = ReshapeRuns({4, 9, 3, 1, 8}, {4, 27, 2, 4});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].from, (Dims{1, 2}));
  EXPECT_EQ(runs[1].to, (Dims{1}));
  EXPECT_EQ(runs[2].from, (Dims{4}));
  EXPECT_EQ(runs[2].to, (Dims{2, 3}));
}

TEST(SameBytes, OrderThroughAReshapeKeepsRunsTogether) {
  // [4096,9,3] with 4096 fastest, then 3, then 9.
  EXPECT_EQ(OrderThroughReshape({4096, 9, 3}, {4096, 27}, {0, 2, 1}), (Dims{0, 1}));
  // 9 inside of 3: the run is in another order than the result counts.
  EXPECT_EQ(OrderThroughReshape({4096, 9, 3}, {4096, 27}, {0, 1, 2}), (Dims{}));
  // 4096 between 3 and 9: torn apart.
  EXPECT_EQ(OrderThroughReshape({4096, 9, 3}, {4096, 27}, {2, 0, 1}), (Dims{}));
  EXPECT_EQ(OrderThroughReshape({8, 256}, {8, 1, 2, 128}, {1, 0}), (Dims{3, 2, 0, 1}));
}

TEST(Layout, ArgumentsAndResultsLieWithTheLeastPadding) {
  const SmallModule m;
  const auto order = [&](std::vector<int64_t> dims, PrimitiveType type = PrimitiveType::kF32) {
    return m.target().DefaultOrder(MakeShape(type, std::move(dims)));
  };
  // 9 x 4 x 4096 words; 16 x 3 x 4096 with the 9 second.
  EXPECT_EQ(order({4096, 9, 3}), (Dims{0, 2, 1}));
  EXPECT_EQ(order({2048, 3}), (Dims{0, 1}));
  EXPECT_EQ(order({1024, 1024}), (Dims{1, 0}));
  // 64 of 128 lanes would be padding.
  EXPECT_EQ(order({2048, 64}), (Dims{0, 1}));
  EXPECT_EQ(order({4, 1024, 8, 64}, PrimitiveType::kBf16), (Dims{1, 3, 2, 0}));
  // Two rows of a tile of its own: T(2,128).
  EXPECT_EQ(order({16, 2048, 2, 128}, PrimitiveType::kBf16), (Dims{3, 2, 1, 0}));
  EXPECT_EQ(order({1024, 1, 32}), (Dims{0, 2, 1}));
  EXPECT_EQ(order({1, 1}), (Dims{1, 0}));
}

}  // namespace
}  // namespace tpusim::passes
