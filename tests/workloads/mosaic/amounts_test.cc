#include "workloads/mosaic/amounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kHuge = int64_t{1} << 60;

Price Adding(int64_t flops, double valu) {
  Price price;
  price.stages.emplace_back();
  price.stages[0].flops = flops;
  price.stages[0].valu = valu;
  return price;
}

TEST(Amounts, WhatIsTooLargeStaysAtTheLargest) {
  EXPECT_EQ(Plus(2, 3), 5);
  EXPECT_EQ(Plus(kHuge, kHuge), kHuge);
  EXPECT_EQ(Times(1 << 20, 1 << 20), int64_t{1} << 40);
  EXPECT_EQ(Times(kHuge, 3), kHuge);
  EXPECT_EQ(Times(kHuge, 0), 0);
}

TEST(Amounts, StagesAddUpSlotBySlot) {
  Stage one;
  one.flops = 8;
  one.valu = 1.5;
  one.eup = 2;
  one.xlu = 3;
  one.products[{8, 128, 128, "bf16"}] = 1;
  Stage sum;
  sum.Add(one, 4);
  sum.Add(one);
  EXPECT_EQ(sum.flops, 40);
  EXPECT_EQ(sum.valu, 7.5);
  EXPECT_EQ(sum.eup, 10);
  EXPECT_EQ(sum.xlu, 15);
  EXPECT_EQ((sum.products[{8, 128, 128, "bf16"}]), 5);
}

TEST(Amounts, PricesAddUpStageByStage) {
  Price sum = Adding(4, 1);
  Price later;
  later.stages.resize(2);
  later.stages[1].eup = 2;
  later.bytes = 16;
  sum.Add(later, 3);
  ASSERT_EQ(sum.stages.size(), 2);
  EXPECT_EQ(sum.stages[0].valu, 1);
  EXPECT_EQ(sum.stages[1].eup, 6);
  EXPECT_EQ(sum.bytes, 48);
  EXPECT_EQ(sum.Total().valu, 1);
  EXPECT_EQ(sum.Total().eup, 6);
  EXPECT_TRUE(Price().IsNothing());
  EXPECT_FALSE(sum.IsNothing());
}

TEST(Amounts, ALoopThatIsReachedAgainIsTheSameLoop) {
  const Loop loop{false, 2, "f.py:3", 5};
  Price sum = Adding(4, 1).InLoop(loop);
  Loop again = loop;
  again.at_most = 7;
  sum.Add(Adding(2, 1).InLoop(again));
  ASSERT_EQ(sum.loops.size(), 1);
  EXPECT_EQ(sum.loops[0].loop.at_most, 7);
  EXPECT_EQ(sum.loops[0].once.Total().flops, 6);
  again.at_most = std::nullopt;
  sum.Add(Adding(2, 1).InLoop(again));
  EXPECT_EQ(sum.loops[0].loop.at_most, std::nullopt);
  EXPECT_THAT(Price().InLoop(loop).loops, IsEmpty());
}

TEST(Amounts, TheSizeOfAPriceIsThatOfItsMessage) {
  const Weights weights{1e-3, 2, 3, 5, 0.5, 0.25};
  Price price = Adding(2 * 8 * 16 * 32, 4);
  price.stages[0].eup = 2;
  price.stages[0].xlu = 1;
  price.stages[0].products[{8, 16, 32, "bf16"}] = 1;
  price.bytes = 10;
  price.remote_bytes = 4;
  const double size = 2 * 4 + 3 * 2 + 5 * 1 + 0.5 * 10 + 0.25 * 4 + 1e-3 * 2 * 8 * 16 * 32;
  EXPECT_DOUBLE_EQ(price.Size(weights), size);
  EXPECT_DOUBLE_EQ(SizeOf(price.Cost("f"), weights), size);
  // One pass of a loop counts.
  const Price looped = price.InLoop({false, 0});
  EXPECT_DOUBLE_EQ(looped.Size(weights), size);
  EXPECT_DOUBLE_EQ(SizeOf(looped.Cost("f"), weights), size);
}

TEST(Amounts, AMessageHasStagesLoopsAndWhatWasAssumed) {
  Price price = Adding(4, 1);
  price.Add(Adding(2, 1).InLoop({false, 1, "f.py:3", 5}));
  price.Add(Adding(2, 1).InLoop({true, 0}));
  price.largest_copies = {"float32[8] at f.py:1", "b", "c", "d"};
  const tpusim::KernelCost cost = price.Cost("f");
  EXPECT_EQ(cost.flops(), 4);
  ASSERT_EQ(cost.stages_size(), 1);
  EXPECT_EQ(cost.stages(0).valu(), 1);
  ASSERT_EQ(cost.loops_size(), 2);
  EXPECT_EQ(cost.loops(0).name(), "f/grid.0");
  EXPECT_EQ(cost.loops(1).name(), "f/loop.1");
  EXPECT_EQ(cost.loops(1).at_most(), 5);
  ASSERT_EQ(cost.assumed_size(), 1);
  EXPECT_THAT(cost.assumed(0), HasSubstr("float32[8] at f.py:1, b, c and 1 more"));
  EXPECT_THAT(Adding(1, 1).Cost("f").assumed(), IsEmpty());
}

TEST(Amounts, NamesAreListedOnce) {
  std::vector<std::string> all = {"a"};
  AddDistinct({"b", "a", "b"}, &all);
  EXPECT_THAT(all, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace tpusim::mosaic
