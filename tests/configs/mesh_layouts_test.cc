#include "configs/mesh_layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "configs/config.h"

namespace tpusim::configs {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Topology TopologyOf(const std::string& config) { return LoadConfig(config, {})->topology; }

TEST(MeshLayoutsTest, HopsAreMeansOverPairs) {
  // 4 x 2 without wrap; partitions 2 i and 2 i + 1 are the pairs of the last axis.
  const Topology topology = TopologyOf("v5e-4x2");
  const std::vector<NamedAxis> mesh = {{"data", 4}, {"model", 2}};
  EXPECT_THAT(MeanHops(topology, mesh, {0, 1, 2, 3, 4, 5, 6, 7}, 1), DoubleEq(1));
  // Pairs (0,7), (1,6), (2,5), (3,4): 4, 2, 2 and 4 hops.
  const std::vector<int64_t> corners = {0, 7, 1, 6, 2, 5, 3, 4};
  EXPECT_THAT(MeanHops(topology, mesh, corners, 1), DoubleEq(3));
  // Groups of `data` are the two rows: six pairs, three 1 apart, two 2, one 3.
  EXPECT_THAT(MeanHops(topology, mesh, corners, 0), DoubleEq(10.0 / 6));
}

TEST(MeshLayoutsTest, OnlyLayoutsThatNoOtherBeats) {
  const Topology topology = TopologyOf("v5e-4x2");
  const std::vector<MeshLayout> layouts = MeshLayouts(topology, {{"data", 4}, {"model", 2}}, 10);
  // data over x and model over y has model 1 apart and data 10/6. data over a 2 x 2 square is less
  // apart, (4 * 1 + 2 * 2) / 6 = 8/6, but model is then 2.
  ASSERT_THAT(layouts, SizeIs(2));
  EXPECT_THAT(layouts[0].apart, ElementsAre(DoubleEq(8.0 / 6), DoubleEq(2)));
  EXPECT_EQ(layouts[0].text, "data over x (2 side by side) and y, model over x (2, each 2 apart)");
  EXPECT_THAT(layouts[1].apart, ElementsAre(DoubleEq(10.0 / 6), DoubleEq(1)));
  EXPECT_EQ(layouts[1].text, "data over x, model over y");
  EXPECT_THAT(layouts[1].device_of_partition, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(MeshLayouts(topology, {{"data", 4}, {"model", 2}}, 1), SizeIs(1));
}

TEST(MeshLayoutsTest, EveryDeviceOnce) {
  const Topology topology = TopologyOf("v7x-2x2x4");
  for (const MeshLayout& layout : MeshLayouts(topology, {{"a", 2}, {"b", 4}, {"c", 4}}, 100)) {
    std::vector<int64_t> devices = layout.device_of_partition;
    std::ranges::sort(devices);
    for (size_t i = 0; i < devices.size(); ++i) EXPECT_EQ(devices[i], static_cast<int64_t>(i));
    EXPECT_THAT(devices, SizeIs(32));
  }
}

TEST(MeshLayoutsTest, OnlyOfAWholeSlice) {
  EXPECT_THAT(MeshLayouts(TopologyOf("v5e-4x2"), {{"data", 4}}, 10), IsEmpty());
  EXPECT_THAT(MeshLayouts(TopologyOf("v5e-4x2"), {}, 10), IsEmpty());
  EXPECT_THAT(MeshLayouts(TopologyOf("2x(v5e-4x2)"), {{"data", 16}}, 10), IsEmpty());
}

}  // namespace
}  // namespace tpusim::configs
