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

SliceRules Rules(WrapRule wrap) {
  SliceRules rules;
  rules.wrap = wrap;
  return rules;
}

TEST(WrapsOfTest, LitePodsWrapOnlyAtSixteen) {
  const SliceRules rules = Rules(WrapRule::kAxisLength16);
  EXPECT_THAT(WrapsOf(rules, {8, 16, 1}), ElementsAre(false, true, false));
  EXPECT_THAT(WrapsOf(rules, {16, 16, 1}), ElementsAre(true, true, false));
  EXPECT_THAT(WrapsOf(rules, {4, 8, 1}), ElementsAre(false, false, false));
}

TEST(WrapsOfTest, CubesWrapAllAxesOrNone) {
  const SliceRules rules = Rules(WrapRule::kWholeCubes4);
  EXPECT_THAT(WrapsOf(rules, {2, 4, 4}), ElementsAre(false, false, false));
  EXPECT_THAT(WrapsOf(rules, {4, 4, 4}), ElementsAre(true, true, true));
  EXPECT_THAT(WrapsOf(rules, {4, 8, 16}), ElementsAre(true, true, true));
  EXPECT_THAT(WrapsOf(Rules(WrapRule::kNever), {16, 16, 16}), ElementsAre(false, false, false));
}

TEST(WrapsOfTest, FirstPodsAreToriOnlyAsAWhole) {
  SliceRules rules = Rules(WrapRule::kFullPod);
  rules.max = {32, 32, 1};
  EXPECT_THAT(WrapsOf(rules, {16, 32, 1}), ElementsAre(false, false, false));
  EXPECT_THAT(WrapsOf(rules, {32, 32, 1}), ElementsAre(true, true, true));
}

Topology Twisted(const std::array<int64_t, 3>& shape) {
  return Topology(shape, {true, true, true}, 1, TwistOf(shape));
}

TEST(TwistTest, ShortAxesShiftTheLongOnes) {
  // 4x4x8: both short axes shift z by 4. 4x8x8: x shifts y and z by 4.
  EXPECT_EQ(TwistOf({4, 4, 8}), (Twist{{{0, 0, 4}, {0, 0, 4}, {0, 0, 0}}}));
  EXPECT_EQ(TwistOf({4, 8, 8}), (Twist{{{0, 4, 4}, {0, 0, 0}, {0, 0, 0}}}));
  EXPECT_EQ(TwistOf({4, 4, 4}), Twist{});
  EXPECT_EQ(TwistOf({4, 4, 12}), Twist{});
  const Topology t = Twisted({4, 4, 8});
  EXPECT_TRUE(t.twisted());
  EXPECT_FALSE(t.wraps(0));
  EXPECT_FALSE(t.wraps(1));
  EXPECT_TRUE(t.wraps(2));
  // Out of x = 3 upwards at z = 1: x = 0, z = 5; and back.
  EXPECT_EQ(t.Neighbour(t.ChipAt({{3, 2, 1}}), D::kXPlus), t.ChipAt({{0, 2, 5}}));
  EXPECT_EQ(t.Neighbour(t.ChipAt({{0, 2, 5}}), D::kXMinus), t.ChipAt({{3, 2, 1}}));
  EXPECT_EQ(t.Neighbour(t.ChipAt({{2, 0, 7}}), D::kYMinus), t.ChipAt({{2, 3, 3}}));
  EXPECT_EQ(t.Neighbour(t.ChipAt({{0, 0, 7}}), D::kZPlus), t.ChipAt({{0, 0, 0}}));
}

// Hops from chip 0 by breadth-first search over the links.
std::vector<int64_t> SearchedHops(const Topology& t, int64_t from) {
  std::vector<int64_t> hops(t.chips(), -1);
  std::vector<int64_t> queue = {from};
  hops[from] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int d = 0; d < kDirections; ++d) {
      const int64_t next = t.Neighbour(queue[i], static_cast<D>(d));
      if (hops[next] >= 0) continue;
      hops[next] = hops[queue[i]] + 1;
      queue.push_back(next);
    }
  }
  return hops;
}

TEST(TwistTest, RoutesAreShortestAndAlikeFromEveryChip) {
  for (const std::array<int64_t, 3>& shape :
       {std::array<int64_t, 3>{4, 4, 8}, {4, 8, 8}, {8, 8, 16}}) {
    const Topology t = Twisted(shape);
    std::map<int64_t, int> from_origin;
    for (int64_t hops : SearchedHops(t, 0)) ++from_origin[hops];
    for (int64_t from = 0; from < t.chips(); from += shape[0] == 8 ? 171 : 1) {
      const std::vector<int64_t> hops = SearchedHops(t, from);
      std::map<int64_t, int> histogram;
      for (int64_t to = 0; to < t.chips(); ++to) {
        ++histogram[hops[to]];
        for (const auto tie : {Topology::RouteTie::kPlus, Topology::RouteTie::kMinus}) {
          const std::vector<Link> route = t.Route(from, to, tie);
          ASSERT_EQ(static_cast<int64_t>(route.size()), hops[to]) << from << " " << to;
          ASSERT_EQ(t.Distance(from, to), hops[to]);
        }
      }
      EXPECT_EQ(histogram, from_origin);
    }
  }
}

TEST(TwistTest, UniformTrafficLoadsAllLinksOfAnAxisAlikeAndLessThanUntwisted) {
  // 4x8x8: z and y of the plain torus carry 8 chips' worth of halves: of 256
  // destinations a route crosses 2 links in z on average, so that each of the
  // 2 z links of a chip carries 256 * 2 / 2 = 256 of one chip's routes' links.
  const auto busiest = [](const Topology& t) {
    std::map<Link, int64_t> load;
    for (int64_t from = 0; from < t.chips(); ++from) {
      for (int64_t to = 0; to < t.chips(); ++to) {
        for (const auto tie : {Topology::RouteTie::kPlus, Topology::RouteTie::kMinus}) {
          for (const Link& link : t.Route(from, to, tie)) ++load[link];
        }
      }
    }
    std::map<D, std::pair<int64_t, int64_t>> per_direction;
    int64_t most = 0;
    for (const auto& [link, count] : load) {
      auto& [low, high] = per_direction.try_emplace(link.direction, count, count).first->second;
      low = std::min(low, count);
      high = std::max(high, count);
      most = std::max(most, count);
    }
    for (const auto& [direction, range] : per_direction) {
      EXPECT_EQ(range.first, range.second) << DirectionName(direction);
    }
    return most;
  };
  const int64_t plain = busiest(Topology({4, 8, 8}, {true, true, true}, 1));
  // Two routes, one per tie, to each of 256 chips: 2 * 256 * 2 hops / 2 links.
  EXPECT_EQ(plain, 512);
  EXPECT_LT(busiest(Twisted({4, 8, 8})), plain);
}

TEST(TopologyTest, SlicesFollowEachOtherAndAreNotLinked) {
  const Topology two({4, 2, 1}, {true, false, false}, 1, {}, 2);
  EXPECT_EQ(two.chips(), 16);
  EXPECT_EQ(two.ChipAt({{1, 1, 0}}, 1), 13);
  EXPECT_EQ(two.At(13), (Coordinates{{1, 1, 0}}));
  EXPECT_EQ(two.SliceOf(13), 1);
  EXPECT_EQ(two.Neighbour(11, Direction::kXPlus), 8);  // round in its slice
  EXPECT_FALSE(two.HasLink(4, Direction::kYPlus));
  EXPECT_TRUE(two.Route(5, 13).empty());
  // Farther than the farthest chip of the same slice.
  EXPECT_GT(two.Distance(5, 13), two.Distance(0, 6));
  EXPECT_EQ(two.AllLinks().size(),
            2 * Topology({4, 2, 1}, {true, false, false}, 1).AllLinks().size());
}

TEST(TopologyDeathTest, BrokenInvariantsAbort) {
  EXPECT_DEATH(Mesh4x2().At(8), "outside the slice");
  EXPECT_DEATH(Mesh4x2().ChipAt({{4, 0, 0}}), "outside the slice");
  EXPECT_DEATH(Mesh4x2().Neighbour(0, D::kXMinus), "no link");
}

}  // namespace
}  // namespace tpusim::configs
