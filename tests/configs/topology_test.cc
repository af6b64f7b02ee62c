#include "configs/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tpusim::configs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using D = Direction;

constexpr std::array<bool, 3> kNoWrap = {false, false, false};

Topology Mesh4x2() { return Topology({4, 2, 1}, kNoWrap, 1); }
Topology Torus16x16() { return Topology({16, 16, 1}, {true, true, false}, 1); }

TEST(TopologyTest, ChipIdsRunXMinor) {
  const Topology t({4, 2, 3}, kNoWrap, 2);
  EXPECT_EQ(t.chips(), 24);
  EXPECT_EQ(t.devices(), 48);
  // 3 + 4 * (1 + 2 * 2) = 23.
  EXPECT_EQ(t.ChipAt({{3, 1, 2}}), 23);
  for (int64_t chip = 0; chip < t.chips(); ++chip) EXPECT_EQ(t.ChipAt(t.At(chip)), chip);
}

TEST(TopologyTest, DirectionsNameTheirAxisAndSign) {
  EXPECT_EQ(DirectionName(D::kXPlus), "x+");
  EXPECT_EQ(DirectionName(D::kZMinus), "z-");
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    EXPECT_EQ(AxisOf(MakeDirection(axis, true)), axis);
    EXPECT_TRUE(IsPlus(MakeDirection(axis, true)));
    EXPECT_FALSE(IsPlus(MakeDirection(axis, false)));
  }
}

TEST(TopologyTest, EdgesOfALineHaveNoLink) {
  // 4 5 6 7
  // 0 1 2 3
  const Topology t = Mesh4x2();
  EXPECT_TRUE(t.HasLink(0, D::kXPlus));
  EXPECT_FALSE(t.HasLink(0, D::kXMinus));
  EXPECT_FALSE(t.HasLink(3, D::kXPlus));
  EXPECT_TRUE(t.HasLink(0, D::kYPlus));
  EXPECT_FALSE(t.HasLink(4, D::kYPlus));
  EXPECT_FALSE(t.HasLink(0, D::kZPlus));
  EXPECT_EQ(t.Neighbour(0, D::kYPlus), 4);
  EXPECT_EQ(t.Neighbour(6, D::kXMinus), 5);
  // Two rows of 3 neighbouring pairs and 4 columns of 1, each in two directions.
  EXPECT_EQ(t.AllLinks().size(), 2 * (2 * 3 + 4 * 1));
  EXPECT_EQ(t.AllLinks()[0], (Link{0, D::kXPlus}));
  EXPECT_EQ(t.AllLinks()[1], (Link{0, D::kYPlus}));
  EXPECT_EQ(t.AllLinks()[2], (Link{1, D::kXPlus}));
}

TEST(TopologyTest, EveryChipOfATorusHasFourLinks) {
  const Topology t = Torus16x16();
  EXPECT_EQ(t.AllLinks().size(), 256 * 4);
  EXPECT_EQ(t.Neighbour(15, D::kXPlus), 0);
  EXPECT_EQ(t.Neighbour(0, D::kYMinus), 240);
}

TEST(TopologyTest, ARingOfTwoHasTwoLinksToTheSameChip) {
  const Topology t({2, 1, 1}, {true, false, false}, 1);
  EXPECT_EQ(t.Neighbour(0, D::kXPlus), 1);
  EXPECT_EQ(t.Neighbour(0, D::kXMinus), 1);
  EXPECT_EQ(t.AllLinks().size(), 4);
  EXPECT_EQ(t.Distance(0, 1), 1);
  // Both ways are one hop: the caller's tie decides.
  EXPECT_THAT(t.Route(0, 1, Topology::RouteTie::kPlus), ElementsAre(Link{0, D::kXPlus}));
  EXPECT_THAT(t.Route(0, 1, Topology::RouteTie::kMinus), ElementsAre(Link{0, D::kXMinus}));
}

TEST(TopologyTest, AnAxisOfOneNeverWraps) {
  const Topology t({16, 1, 1}, {true, true, true}, 1);
  EXPECT_TRUE(t.wraps(0));
  EXPECT_FALSE(t.wraps(1));
  EXPECT_FALSE(t.HasLink(0, D::kYPlus));
}

TEST(RouteTest, XBeforeYOnAMesh) {
  // 0 (0,0) to 7 (3,1): three in x, then one in y.
  const Topology t = Mesh4x2();
  EXPECT_EQ(t.Distance(0, 7), 4);
  EXPECT_THAT(t.Route(0, 7), ElementsAre(Link{0, D::kXPlus}, Link{1, D::kXPlus}, Link{2, D::kXPlus},
                                         Link{3, D::kYPlus}));
  EXPECT_THAT(t.Route(7, 5), ElementsAre(Link{7, D::kXMinus}, Link{6, D::kXMinus}));
  EXPECT_THAT(t.Route(5, 5), IsEmpty());
}

TEST(RouteTest, TheShorterWayRoundOnARing) {
  const Topology t = Torus16x16();
  // x: 1 to 14 is 13 up, 3 down. y: 0 to 2 is 2 up.
  const int64_t from = t.ChipAt({{1, 0, 0}});
  const int64_t to = t.ChipAt({{14, 2, 0}});
  EXPECT_EQ(t.Distance(from, to), 5);
  EXPECT_THAT(t.Route(from, to),
              ElementsAre(Link{1, D::kXMinus}, Link{0, D::kXMinus}, Link{15, D::kXMinus},
                          Link{14, D::kYPlus}, Link{30, D::kYPlus}));
}

TEST(RouteTest, TheAntipodeTieIsTheCallers) {
  const Topology t({4, 1, 1}, {true, false, false}, 1);
  EXPECT_EQ(t.Distance(1, 3), 2);
  EXPECT_THAT(t.Route(1, 3), ElementsAre(Link{1, D::kXPlus}, Link{2, D::kXPlus}));
  EXPECT_THAT(t.Route(1, 3, Topology::RouteTie::kMinus),
              ElementsAre(Link{1, D::kXMinus}, Link{0, D::kXMinus}));
  // Without a tie the argument changes nothing.
  EXPECT_EQ(t.Route(0, 3, Topology::RouteTie::kMinus), t.Route(0, 3));
}

TEST(RouteTest, RoutesAreAsLongAsDistancesAndUseExistingLinks) {
  for (const Topology& t : {Mesh4x2(), Topology({3, 4, 2}, {true, true, false}, 1)}) {
    for (int64_t from = 0; from < t.chips(); ++from) {
      for (int64_t to = 0; to < t.chips(); ++to) {
        const std::vector<Link> route = t.Route(from, to);
        EXPECT_EQ(route.size(), t.Distance(from, to));
        EXPECT_EQ(t.Distance(from, to), t.Distance(to, from));
        int64_t at = from;
        for (const Link& link : route) {
          ASSERT_EQ(link.chip, at);
          ASSERT_TRUE(t.HasLink(link.chip, link.direction));
          at = t.Neighbour(link.chip, link.direction);
        }
        EXPECT_EQ(at, to);
      }
    }
  }
}

TEST(RouteTest, UniformTrafficLoadsARingOfFiveEvenly) {
  // Odd rings have no ties. From every chip: 2 destinations each way, at 1 and
  // 2 hops; each of the 5 links of one direction carries 5 * (1 + 2) / 5 = 3.
  const Topology t({5, 1, 1}, {true, false, false}, 1);
  std::map<Link, int> load;
  for (int64_t from = 0; from < 5; ++from) {
    for (int64_t to = 0; to < 5; ++to) {
      for (const Link& link : t.Route(from, to)) ++load[link];
    }
  }
  ASSERT_EQ(load.size(), 10);
  for (const auto& [link, count] : load) EXPECT_EQ(count, 3);
}

TEST(WrapsOfTest, LitePodsWrapOnlyAtSixteen) {
  EXPECT_THAT(WrapsOf(WrapRule::kAxisLength16, {8, 16, 1}), ElementsAre(false, true, false));
  EXPECT_THAT(WrapsOf(WrapRule::kAxisLength16, {16, 16, 1}), ElementsAre(true, true, false));
  EXPECT_THAT(WrapsOf(WrapRule::kAxisLength16, {4, 8, 1}), ElementsAre(false, false, false));
}

TEST(WrapsOfTest, CubesWrapAllAxesOrNone) {
  EXPECT_THAT(WrapsOf(WrapRule::kWholeCubes4, {2, 4, 4}), ElementsAre(false, false, false));
  EXPECT_THAT(WrapsOf(WrapRule::kWholeCubes4, {4, 4, 4}), ElementsAre(true, true, true));
  EXPECT_THAT(WrapsOf(WrapRule::kWholeCubes4, {4, 8, 16}), ElementsAre(true, true, true));
  EXPECT_THAT(WrapsOf(WrapRule::kNever, {16, 16, 16}), ElementsAre(false, false, false));
}

TEST(TopologyDeathTest, BrokenInvariantsAbort) {
  EXPECT_DEATH(Mesh4x2().At(8), "outside the slice");
  EXPECT_DEATH(Mesh4x2().ChipAt({{4, 0, 0}}), "outside the slice");
  EXPECT_DEATH(Mesh4x2().Neighbour(0, D::kXMinus), "no link");
}

}  // namespace
}  // namespace tpusim::configs
