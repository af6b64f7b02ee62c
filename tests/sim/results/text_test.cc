#include "sim/results/text.h"

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

}  // namespace
}  // namespace tpusim::results
