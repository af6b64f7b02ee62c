#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "configs/config.h"
#include "configs/mesh_assignment.h"
#include "configs/status_macros.h"
#include "configs/topology.h"

namespace tpusim::configs {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<int64_t> Order(const std::string& config, const std::vector<int64_t>& mesh,
                           std::string* rule = nullptr) {
  const absl::StatusOr<std::vector<int64_t>> order =
      DeviceOrder(LoadConfig(config, {}).value(), mesh, rule);
  EXPECT_TRUE(order.ok()) << Message(order.status());
  return order.value_or(std::vector<int64_t>());
}

std::string Error(const std::string& config, const std::vector<int64_t>& mesh) {
  const auto order = DeviceOrder(LoadConfig(config, {}).value(), mesh, nullptr);
  return order.ok() ? "" : Message(order.status());
}

TEST(DeviceOrderTest, TheTrayOfEightIsARingOfNeighbours) {
  // 4 5 6 7
  // 0 1 2 3   walked 0 1 2 3 7 6 5 4: the second axis of 2x4 is a line of four.
  std::string rule;
  EXPECT_THAT(Order("v5e-4x2", {2, 4}, &rule), ElementsAre(0, 1, 2, 3, 7, 6, 5, 4));
  EXPECT_THAT(rule, HasSubstr("make_mesh order of mesh 2x4: the fixed order of JAX for 8 devices"));
  const Topology topology = LoadConfig("v5e-4x2", {})->topology;
  const std::vector<int64_t> ring = Order("v5e-4x2", {8});
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(topology.Distance(ring[i], ring[(i + 1) % 8]), 1);
}

TEST(DeviceOrderTest, OnTheNarrowSliceTheAxisOfFourIsABlock) {
  // xy: 00 10 01 11 / 13 03 12 02; ids x + 2 y.
  EXPECT_THAT(Order("v5e-2x4", {2, 4}), ElementsAre(0, 1, 2, 3, 7, 6, 5, 4));
}

TEST(DeviceOrderTest, SixteenChips) {
  EXPECT_THAT(Order("v5e-4x4", {16}),
              ElementsAre(0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4));
  // Two axes: x minor, row by row.
  EXPECT_THAT(Order("v5e-4x4", {4, 4}),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

TEST(DeviceOrderTest, AWholePodAsOneAxisRunsYMinor) {
  const std::vector<int64_t> order = Order("v5e-16x16", {256});
  for (int64_t i = 0; i < 256; ++i) EXPECT_EQ(order[i], i / 16 + 16 * (i % 16));
}

// Every mesh of one and two axes on every slice, as JAX itself answered.
TEST(DeviceOrderTest, AgreesWithJax) {
  std::ifstream in(std::string(TPUSIM_SOURCE_DIR) + "/tests/configs/data/v5e_device_order.txt");
  int cases = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream fields(line);
    std::string slice, mesh_text;
    fields >> slice >> mesh_text;
    std::replace(mesh_text.begin(), mesh_text.end(), 'x', ' ');
    std::istringstream sizes(mesh_text);
    std::vector<int64_t> mesh, expected;
    for (int64_t v; sizes >> v;) mesh.push_back(v);
    for (int64_t v; fields >> v;) expected.push_back(v);
    EXPECT_THAT(Order("v5e-" + slice, mesh), ElementsAreArray(expected)) << line;
    ++cases;
  }
  EXPECT_EQ(cases, 86);
}

TEST(DeviceOrderTest, EveryOrderIsAPermutation) {
  for (const std::string& slice : SliceNames("v5e")) {
    const std::string name = "v5e-" + slice;
    const int64_t devices = LoadConfig(name, {})->devices();
    for (const std::vector<int64_t>& mesh :
         {std::vector<int64_t>{devices},
          {1, devices, 1},
          {devices / std::min<int64_t>(devices, 2), std::min<int64_t>(devices, 2)}}) {
      std::vector<int64_t> order = Order(name, mesh);
      std::sort(order.begin(), order.end());
      for (int64_t i = 0; i < devices; ++i) ASSERT_EQ(order[i], i) << name;
    }
  }
}

TEST(DeviceOrderTest, FewerPartitionsTakeABoxAtTheOrigin) {
  std::string rule;
  // JAX takes the first host of 2x2 chips, in its fixed order 0 1 3 2: ids 0 1 5 4.
  EXPECT_THAT(Order("v5e-4x2", {4}, &rule), ElementsAre(0, 1, 5, 4));
  EXPECT_THAT(rule, HasSubstr("on the 2x2 chips at the origin; 4 devices idle"));
  // The first three devices of JAX leave a hole; a line of three does not.
  EXPECT_THAT(Order("v5e-4x2", {3}), ElementsAre(0, 1, 2));
  // Six: 3x2. Axis of 3 along x, axis of 2 along y.
  EXPECT_THAT(Order("v5e-4x2", {2, 3}), ElementsAre(0, 1, 2, 4, 5, 6));
  EXPECT_THAT(Order("v5e-4x2", {}), ElementsAre(0));
  EXPECT_THAT(Order("v5e-1x1", {1, 1}), ElementsAre(0));
}

TEST(DeviceOrderTest, Errors) {
  EXPECT_EQ(Error("v5e-4x2", {4, 4}),
            "the program has 16 partitions (mesh 4x4), v5e-4x2 has 8 devices: take a larger slice "
            "or a smaller mesh");
  EXPECT_THAT(Error("v5e-4x2", {1000000000000, 1000000000000, 1000000000000}),
              HasSubstr("v5e-4x2 has 8 devices"));
  EXPECT_THAT(Error("v5e-4x2", {5}), HasSubstr("5 of the 8 devices of v5e-4x2 do not form a box"));
  EXPECT_THAT(Error("v5e-4x2", {0}), HasSubstr("at least one device"));
  EXPECT_THAT(Error("v5e-4x2", {-2, -4}), HasSubstr("at least one device"));
}

TEST(MeshAssignmentTest, TheLastAxisChoosesFirstAndTakesTheMostAxes) {
  // 4x4x16 as 16 x 16: the last axis gets the 4x4 plane, the first gets z.
  const auto whole = AssignWholeAxes({4, 4, 16}, {16, 16});
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(*whole, (MeshAssignment{{1, 4}, {1, 4}, {16, 1}}));
  EXPECT_FALSE(AssignWholeAxes({4, 4, 16}, {8, 32}).has_value());
}

TEST(MeshAssignmentTest, SplitsPreferWholeAxes) {
  // 8x8 as 2 x 32: 32 takes one axis whole and 4 of the other; of the two
  // equal ways x comes first.
  const auto split = AssignSplitAxes({8, 8, 1}, {2, 32});
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(*split, (MeshAssignment{{1, 8}, {2, 4}, {1, 1}}));
  // 3 does not divide 8.
  EXPECT_FALSE(AssignSplitAxes({8, 8, 1}, {3, 32}).has_value());
}

TEST(MeshAssignmentTest, LaterMeshAxesAreMinorWithinASplitAxis) {
  // A line of 6 split 2 (major) x 3 (minor).
  EXPECT_THAT(MeshCoordinates({{2, 3}}, {2, 3}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3),
                          ElementsAre(4), ElementsAre(5)));
  // One mesh axis over 2 x 3 chips: the first physical axis is major.
  EXPECT_THAT(MeshCoordinates({{2}, {3}}, {6}),
              ElementsAre(ElementsAre(0, 0), ElementsAre(0, 1), ElementsAre(0, 2),
                          ElementsAre(1, 0), ElementsAre(1, 1), ElementsAre(1, 2)));
}

}  // namespace
}  // namespace tpusim::configs
