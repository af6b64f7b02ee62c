#include "sim/results/report/rollup_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/results/report/text.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::ElementsAre;

// A third each: 33.3 three times leaves a tenth, which the first gets.
TEST(RollupTextTest, SharesAddUp) {
  EXPECT_THAT(SharesText({Picoseconds(1), Picoseconds(1), Picoseconds(1)}),
              ElementsAre("33.4%", "33.3%", "33.3%"));
  EXPECT_THAT(SharesText({Picoseconds(2), Picoseconds(1)}), ElementsAre("66.7%", "33.3%"));
  EXPECT_THAT(SharesText({Picoseconds(0)}), ElementsAre("0.0%"));
  EXPECT_THAT(SharesText({Picoseconds(7)}), ElementsAre("100.0%"));
}

TEST(RollupTextTest, Category) {
  EXPECT_THAT(TableLines(RollupCells(SampleReport(), RollupBy::kCategory, 2), 100),
              ElementsAre("category (2 of 4)   count      time   step   compute   exposed",
                          "convolution fusion      2  70.00 us  70.0%  70.00 us      0 ns",
                          "exposed all-gather      1  20.00 us  20.0%      0 ns  20.00 us",
                          "(2 others)              2  10.00 us  10.0%  8.000 us      0 ns"));
}

TEST(RollupTextTest, Collective) {
  EXPECT_THAT(TableLines(RollupCells(SampleReport(), RollupBy::kCollective, 9), 100),
              ElementsAre("collective          count      time   step  in flight    hidden",
                          "(no collective)            80.00 us  80.0%",
                          "all-gather              1  20.00 us  20.0%   20.00 us      0 ns",
                          "collective-permute             0 ns   0.0%   60.00 us  60.00 us"));
}

// The scopes that all are in are told once; "(rest)" is what is in no scope inside.
TEST(RollupTextTest, Scope) {
  EXPECT_THAT(TableLines(RollupCells(SampleReport(), RollupBy::kScope, 3), 100),
              ElementsAre("scope in jit(f)       time   step   compute   exposed",
                          "layer/while/body  70.00 us  70.0%  70.00 us      0 ns",
                          "layer/(rest)      22.00 us  22.0%      0 ns  20.00 us",
                          "loss              8.000 us   8.0%  8.000 us      0 ns"));
}

TEST(RollupTextTest, SideBySide) {
  const Report a = SampleReport();
  Report b = a;
  b.rollups.Of(RollupBy::kCategory).erase(b.rollups.Of(RollupBy::kCategory).begin() + 1);
  EXPECT_THAT(TableLines(RollupCells({a, b}, RollupBy::kCategory, 2, {"A", "B"}), 100),
              ElementsAre("category (2 of 4)          A         B",
                          "convolution fusion  70.00 us  70.00 us",
                          "exposed all-gather  20.00 us      0 ns",
                          "(2 others)          10.00 us  10.00 us"));
}

}  // namespace
}  // namespace tpusim::results
