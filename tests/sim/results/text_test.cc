#include "sim/results/report/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpusim::results {
namespace {

using ::testing::ElementsAre;

TEST(TextTest, TimesHaveFourDigits) {
  EXPECT_EQ(TimeText(Picoseconds(0)), "0 ns");
  EXPECT_EQ(TimeText(Picoseconds(850'000)), "850 ns");
  EXPECT_EQ(TimeText(Picoseconds(1'500)), "1.500 ns");
  EXPECT_EQ(TimeText(Picoseconds(311'234'567)), "311.2 us");
  EXPECT_EQ(TimeText(Microseconds(80)), "80.00 us");
  EXPECT_EQ(TimeText(Microseconds(1250)), "1.250 ms");
  EXPECT_EQ(TimeText(Microseconds(3'210'000)), "3.210 s");
  // Rounds up into the next unit instead of printing 1000.0 us.
  EXPECT_EQ(TimeText(Picoseconds(999'999'999)), "1.000 ms");
}

TEST(TextTest, SignedTimes) {
  EXPECT_EQ(SignedTimeText(Microseconds(80)), "+80.00 us");
  EXPECT_EQ(SignedTimeText(Picoseconds(-80'000'000)), "-80.00 us");
}

TEST(TextTest, SizesArePowersOf1024) {
  EXPECT_EQ(BytesText(Bytes(512)), "512 B");
  EXPECT_EQ(BytesText(Bytes(64 * kMiB)), "64.00 MiB");
  EXPECT_EQ(BytesText(Bytes(16'000'000'000)), "14.90 GiB");
  EXPECT_EQ(FlopsText(Flops(34'359'738'368)), "34.36 GFLOP");
}

TEST(TextTest, ClipMarksWhatItCut) {
  EXPECT_EQ(Clip("abcdef", 6), "abcdef");
  EXPECT_EQ(Clip("abcdefg", 6), "abc...");
}

TEST(TextTest, TableAlignsNumbersRightAndMarkedColumnsLeft) {
  EXPECT_THAT(
      TableLines({{"name", "count", "<kind"}, {"a", "1", "x"}, {"bcdefg", "100", "yz"}}, 80),
      ElementsAre("name    count  kind",  //
                  "a           1  x",     //
                  "bcdefg    100  yz"));
}

TEST(TextTest, TableTakesRoomFromTheFirstColumn) {
  // 30 + 2 + 5 = 37 columns, 7 too many for 30: the first gets 23.
  EXPECT_THAT(TableLines({{"name", "count"}, {std::string(30, 'a'), "12345"}}, 30),
              ElementsAre("name                     count",  //
                          "aaaaaaaaaaaaaaaaaaaa...  12345"));
}

TEST(TextTest, TableCutsALeftAlignedLastColumnFirst) {
  // 18 + 2 + 30 = 50: the last column is cut, the first keeps its 18.
  EXPECT_THAT(TableLines({{"name", "<how"}, {std::string(18, 'a'), std::string(30, 'b')}}, 40),
              ElementsAre("name                how",  //
                          "aaaaaaaaaaaaaaaaaa  bbbbbbbbbbbbbbbbb..."));
}

TEST(TextTest, NumbersAreNeverCut) {
  // 10 + 2 + 6 + 2 + 6 = 26 columns; of 20 the first has 10 already, so the numbers go on below.
  EXPECT_THAT(TableLines({{"name", "first", "second"}, {"abcdefghij", "111111", "222222"}}, 20),
              ElementsAre("name         first",  //
                          "abcdefghij  111111",  //
                          "",                    //
                          "name        second",  //
                          "abcdefghij  222222"));
}

TEST(TextTest, ALastColumnThatMayBeCutIsLeftOutBeforeNumbersGoBelow) {
  // The first column has 16 of its 18, behind which 6 and 16 do not fit into 30.
  EXPECT_THAT(TableLines({{"name", "number", "<source"},
                          {std::string(18, 'a'), "111111", std::string(20, 'b')}},
                         30),
              ElementsAre("name              number",  //
                          "aaaaaaaaaaaaa...  111111"));
}

TEST(TextTest, OtherTextColumnsGetNarrower) {
  // 16 + 2 + 20 + 2 + 6 = 46; of 36 the second keeps 10.
  EXPECT_THAT(TableLines({{"name", "<kind", "number"},
                          {std::string(16, 'a'), std::string(20, 'k'), "111111"}},
                         36),
              ElementsAre("name              kind        number",  //
                          "aaaaaaaaaaaaaaaa  kkkkkkk...  111111"));
}

TEST(TextTest, WhatIsMeantToBeReadGoesBelowItsRow) {
  const std::vector<std::vector<std::string>> rows = {{"name", "number", "<how"},
                                                      {"a", "1", "--set of=these words"}};
  EXPECT_THAT(TableLines(rows, 80, LastColumn::kBelow),
              ElementsAre("name  number  how", "a          1  --set of=these words"));
  EXPECT_THAT(TableLines(rows, 20, LastColumn::kBelow),
              ElementsAre("name  number",        //
                          "a          1",        //
                          "    --set of=these",  //
                          "    words"));
}

TEST(TextTest, WrappedLinesKeepLongWordsAndAlignment) {
  EXPECT_THAT(WrappedLines("step time      one two", 15, 18),
              ElementsAre("step time      one", "               two"));
  EXPECT_THAT(WrappedLines("--a=very-long-word b", 2, 6), ElementsAre("--a=very-long-word", "  b"));
  EXPECT_THAT(WrappedLines("", 2, 6), ElementsAre(""));
}

}  // namespace
}  // namespace tpusim::results
