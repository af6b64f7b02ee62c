// Rows of the hot device, by hand.
#include "workloads/passes/annotate/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpusim::passes {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(RoutingTest, ZipfRanksAlternateBetweenDevices) {
  EXPECT_THAT(ZipfShares(0, 4, 2), ElementsAre(0.25, 0.25, 0.25, 0.25));
  // Shares of 1, 1/2, 1/3 and 1/4, which are 25/12 together; ranks 0 and 2 are on device 0.
  EXPECT_THAT(ZipfShares(1, 4, 2), ElementsAre(DoubleEq(12. / 25), DoubleEq(4. / 25),
                                               DoubleEq(6. / 25), DoubleEq(3. / 25)));
}

TEST(RoutingTest, CountsOfOneLayerStayInTheirPlaces) {
  EXPECT_THAT(CountedShares({{0, 1, 3, 0}}, 2), ElementsAre(0, 0.25, 0.75, 0));
}

TEST(RoutingTest, LayersWithAnotherHotDeviceEachAreAsHotTogether) {
  // Each layer has a device that gets all rows: their mean has one too, not two of a half.
  EXPECT_THAT(CountedShares({{4, 0, 0, 0}, {0, 0, 0, 9}}, 2), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(CountedShares({{1, 3, 0, 0}, {1, 1, 1, 1}}, 2),
              ElementsAre(0.5, 0.25, 0.125, 0.125));
}

TEST(RoutingTest, ADeviceDropsWhatItHasNoRoomFor) {
  const RoutedRows all = RowsOfHotDevice({0.25, 0.75, 0, 0}, 2, 100, 200);
  EXPECT_THAT(all.rows, ElementsAre(50, 150));
  EXPECT_EQ(all.hot, 0);
  EXPECT_DOUBLE_EQ(all.imbalance, 2);
  EXPECT_DOUBLE_EQ(all.dropped, 0);
  // 150 of 200 rows fit; those of the last expert are cut off.
  const RoutedRows capped = RowsOfHotDevice({0.25, 0.75, 0, 0}, 2, 100, 150);
  EXPECT_THAT(capped.rows, ElementsAre(50, 100));
  EXPECT_DOUBLE_EQ(capped.imbalance, 2);
  EXPECT_DOUBLE_EQ(capped.dropped, 0.25);
}

TEST(RoutingTest, SendersShareTheRoomOfAReceiver) {
  const RoutedRows all = RowsSentTo({0.75, 0.25}, 2, 100, 200);
  EXPECT_THAT(all.rows, ElementsAre(75, 25));
  EXPECT_DOUBLE_EQ(all.imbalance, 1.5);
  EXPECT_DOUBLE_EQ(all.dropped, 0);
  // Of the 150 rows for device 0 it holds 120, 60 of each sender.
  const RoutedRows capped = RowsSentTo({0.75, 0.25}, 2, 100, 120);
  EXPECT_THAT(capped.rows, ElementsAre(60, 25));
  EXPECT_DOUBLE_EQ(capped.dropped, 30. / 200);
}

}  // namespace
}  // namespace tpusim::passes
