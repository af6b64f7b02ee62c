#include "workloads/sharding/types/axes.h"

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using ::testing::ElementsAre;

TEST(Axes, OverlapIsAboutPieces) {
  EXPECT_TRUE(Overlap(X(), XMajor()));
  EXPECT_TRUE(Overlap(X(), XMinor()));
  EXPECT_FALSE(Overlap(XMajor(), XMinor()));
  EXPECT_FALSE(Overlap(X(), Y()));
}

TEST(Axes, NeighbouringPiecesAreOne) {
  EXPECT_EQ(Joined({XMajor(), XMinor()}), Axes{X()});
  // The other way round the minor piece varies slower: two digits.
  EXPECT_EQ(Joined({XMinor(), XMajor()}), (Axes{XMinor(), XMajor()}));
}

TEST(Axes, SplitMajorCutsAxes) {
  // x,y is 8 shards; the major 2 of them are x:(1)2.
  const auto split = SplitMajor({X(), Y()}, 2);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->first, Axes{XMajor()});
  EXPECT_EQ(split->second, (Axes{XMinor(), Y()}));
  EXPECT_FALSE(SplitMajor({X()}, 3).has_value());
  EXPECT_FALSE(SplitMajor({X()}, 8).has_value());
}

TEST(Axes, CommonPrefixMayBeAPiece) {
  EXPECT_EQ(CommonPrefix({X(), Y()}, {X()}), Axes{X()});
  EXPECT_EQ(CommonPrefix({XMajor(), Y()}, {X(), Y()}), Axes{XMajor()});
  EXPECT_TRUE(CommonPrefix({Y()}, {X()}).empty());
}

TEST(Axes, CutAlikeMakesPiecesEqualOrDisjoint) {
  Axes a = {X()}, b = {XMinor()};
  ASSERT_TRUE(CutAlike({&a, &b}));
  EXPECT_EQ(a, (Axes{XMajor(), XMinor()}));
  // 6 = 2 * 3 and 3 * 2: the cuts at 2 and 3 do not nest.
  Axes c = {{0, 1, 2}}, d = {{0, 1, 3}};
  EXPECT_FALSE(CutAlike({&c, &d}));
}

TEST(Axes, ShardIndexIsMixedRadix) {
  // Position 5 = x 2, y 1. Along y,x: 1 * 4 + 2.
  EXPECT_EQ(ShardIndex(XY(), {Y(), X()}, 5), 6);
  EXPECT_EQ(ShardIndex(XY(), {X()}, 5), 2);
  EXPECT_EQ(ShardIndex(XY(), {XMinor()}, 6), 1);  // x 3 = 1 * 2 + 1
}

TEST(Axes, ReplicaGroupsAreOrderedByShard) {
  EXPECT_THAT(ReplicaGroups(XY(), {Y()}), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3),
                                                      ElementsAre(4, 5), ElementsAre(6, 7)));
  // Along y,x the members of the only group: y slowest.
  EXPECT_THAT(ReplicaGroups(XY(), {Y(), X()}), ElementsAre(ElementsAre(0, 2, 4, 6, 1, 3, 5, 7)));
  Mesh permuted{{{"x", 4}}, {0, 1, 3, 2}};
  EXPECT_THAT(ReplicaGroups(permuted, {{0, 1, 4}}), ElementsAre(ElementsAre(0, 1, 3, 2)));
}

// The groups that the counted form stands for.
std::vector<std::vector<int64_t>> Listed(const hlo::IotaGroups& groups) {
  const auto devices = hlo::TransposedIota(groups.reshape_dims, groups.transpose_perm).value();
  std::vector<std::vector<int64_t>> listed(groups.groups);
  for (size_t i = 0; i < devices.size(); ++i) {
    listed[i / groups.group_size].push_back(devices[i]);
  }
  return listed;
}

TEST(Axes, ReplicaGroupsCanBeCounted) {
  // Along y, the minor axis, groups are neighbours: [4,2]<=[8].
  const auto minor = IotaReplicaGroups(XY(), {Y()});
  ASSERT_TRUE(minor);
  EXPECT_THAT(minor->reshape_dims, ElementsAre(8));
  EXPECT_THAT(minor->transpose_perm, ElementsAre(0));
  // Along x: [2,4]<=[4,2]T(1,0).
  const auto major = IotaReplicaGroups(XY(), {X()});
  ASSERT_TRUE(major);
  EXPECT_THAT(major->reshape_dims, ElementsAre(4, 2));
  EXPECT_THAT(major->transpose_perm, ElementsAre(1, 0));
  const Mesh cube{{{"a", 4}, {"b", 6}, {"c", 1}, {"d", 8}}, {}};
  const std::vector<Axes> all = {{},
                                 {{0, 1, 4}},
                                 {{0, 2, 2}, {1, 1, 6}},
                                 {{3, 2, 2}, {0, 1, 2}},
                                 {{1, 2, 3}, {3, 4, 2}, {1, 1, 2}, {2, 1, 1}},
                                 {{3, 1, 8}, {1, 1, 6}, {0, 1, 4}}};
  for (const Axes& axes : all) {
    const auto groups = IotaReplicaGroups(cube, axes);
    ASSERT_TRUE(groups);
    EXPECT_EQ(Listed(*groups), ReplicaGroups(cube, axes)) << ToString(axes, cube);
  }
  // A third of b beside a half of it do not nest, and an order of devices is a list.
  EXPECT_FALSE(IotaReplicaGroups(cube, {{1, 1, 2}, {1, 3, 2}}));
  EXPECT_FALSE(IotaReplicaGroups(Mesh{{{"x", 4}}, {0, 1, 3, 2}}, {{0, 1, 4}}));
}

}  // namespace
}  // namespace tpusim::sharding
