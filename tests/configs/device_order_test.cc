#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
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
      DeviceOrder(LoadConfig(config, {}).value(), mesh, /*jax=*/"", rule);
  EXPECT_TRUE(order.ok()) << Message(order.status());
  return order.value_or(std::vector<int64_t>());
}

std::string Wrong(const std::string& config, const std::vector<int64_t>& mesh) {
  const auto order = DeviceOrder(LoadConfig(config, {}).value(), mesh, /*jax=*/"", nullptr);
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

// 64-bit FNV-1a over the ids in decimal, each with a space behind it.
uint64_t Hash(const std::vector<int64_t>& ids) {
  uint64_t value = 0xcbf29ce484222325;
  for (int64_t id : ids) {
    for (char c : std::to_string(id) + " ") {
      value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  return value;
}

// The lines of a file of tests/configs/data by what they are of, "v5e 4x2 2x4".
std::map<std::string, std::string> Lines(const std::string& name) {
  std::ifstream in(std::string(TPUSIM_SOURCE_DIR) + "/tests/configs/data/" + name);
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    size_t end = 0;
    for (int field = 0; field < 3; ++field) end = line.find(' ', end + 1);
    lines[line.substr(0, end)] = line.substr(end + 1);
  }
  return lines;
}

// Orders of one version of JAX, as it answered itself: the devices in `lines`, or "refused".
struct Counts {
  std::map<std::string, int> answered, refused;
};
Counts Compare(const std::map<std::string, std::string>& lines, std::string_view jax) {
  Counts counts;
  for (const auto& [of, expected] : lines) {
    std::istringstream fields(of);
    std::string chip, slice, mesh_text, first;
    fields >> chip >> slice >> mesh_text;
    std::replace(mesh_text.begin(), mesh_text.end(), 'x', ' ');
    std::istringstream sizes(mesh_text);
    std::vector<int64_t> mesh;
    for (int64_t v; sizes >> v;) mesh.push_back(v);
    const Config config = LoadConfig(chip + "-" + slice, {}).value();
    std::string rule;
    const auto order = DeviceOrder(config, mesh, jax, &rule);
    std::istringstream ids(expected);
    ids >> first;
    if (first == "refused") {
      // There is an order all the same, if create_device_mesh has one on request.
      ++counts.refused[chip];
      if (order.ok()) {
        EXPECT_THAT(rule, HasSubstr("which make_mesh refuses")) << of;
      }
      continue;
    }
    ++counts.answered[chip];
    EXPECT_TRUE(order.ok()) << of << ": " << Message(order.status());
    if (!order.ok()) continue;
    if (first == "=") {
      uint64_t hash = 0;
      ids >> hash;
      EXPECT_EQ(Hash(*order), hash) << of;
      continue;
    }
    std::vector<int64_t> devices = {std::stoll(first)};
    for (int64_t v; ids >> v;) devices.push_back(v);
    EXPECT_THAT(*order, ElementsAreArray(devices)) << of;
  }
  return counts;
}

// Meshes of one to three axes on slices of every chip.
TEST(DeviceOrderTest, AgreesWithJax) {
  const Counts counts = Compare(Lines("device_order.txt"), "0.10.2");
  EXPECT_EQ(counts.answered, (std::map<std::string, int>{{"v2", 66},
                                                         {"v3", 58},
                                                         {"v4", 72},
                                                         {"v4i", 6},
                                                         {"v5e", 143},
                                                         {"v5p", 61},
                                                         {"v6e", 77},
                                                         {"v7x", 138}}));
  EXPECT_EQ(counts.refused,
            (std::map<std::string, int>{{"v4", 44}, {"v5p", 40}, {"v6e", 66}, {"v7x", 19}}));
}

// From 0.11.1 on devices of a chip of v7x come before the axes of the torus, and 2x2x2 chips of v5p
// are walked along links.
TEST(DeviceOrderTest, FollowsTheVersionOfJax) {
  const std::map<std::string, std::string> changed = Lines("device_order_jax0_12.txt");
  const Counts counts = Compare(changed, "0.12.0.1");
  EXPECT_EQ(counts.answered, (std::map<std::string, int>{{"v5p", 6}, {"v7x", 14}}));
  std::map<std::string, std::string> lines = Lines("device_order.txt");
  Compare(lines, "0.11.0");
  for (const auto& [of, order] : changed) lines[of] = order;
  Compare(lines, "0.11.1");
  Compare(lines, "");
}

TEST(DeviceOrderTest, VersionsOfJax) {
  EXPECT_LT(ParseJaxVersion("0.9.2"), ParseJaxVersion("0.10.0"));
  EXPECT_LT(ParseJaxVersion("0.11.0"), ParseJaxVersion("0.11.1"));
  EXPECT_EQ(ParseJaxVersion("0.12.0.1"), ParseJaxVersion("0.12.0"));
  EXPECT_EQ(ParseJaxVersion("0.11.1.dev20260101"), ParseJaxVersion("0.11.1"));
  EXPECT_EQ(ParseJaxVersion("none"), JaxVersion());
}

TEST(DeviceOrderTest, EveryOrderIsAPermutation) {
  for (const std::string& chip : ChipNames()) {
    for (const std::string& slice : SliceNames(chip)) {
      const std::string name = chip + "-" + slice;
      const int64_t devices = LoadConfig(name, {})->devices();
      if (devices > 1024) continue;
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
}

TEST(DeviceOrderTest, TwoDevicesPerChip) {
  // A tray of four chips 0 1 / 2 3, each with devices 2c and 2c + 1, walked
  // round the square: chips 0 1 3 2. Both generations that have it agree.
  std::string rule;
  EXPECT_THAT(Order("v3-2x2", {4, 2}, &rule), ElementsAre(0, 1, 2, 3, 6, 7, 4, 5));
  EXPECT_THAT(rule, HasSubstr("the fixed order of JAX for 8 devices"));
  EXPECT_THAT(Order("v7x-2x2x2", {16}, &rule),
              ElementsAre(0, 1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 11, 14, 15, 12, 13));
  EXPECT_THAT(rule, HasSubstr("for each 8 devices"));
  // The first hosts of a v3-4x4 are the chips 0 1 4 5 and 2 3 6 7.
  EXPECT_THAT(Order("v3-4x4", {2, 2}, &rule), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Order("v3-4x4", {16, 1}, &rule),
              ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15));
  EXPECT_THAT(rule, HasSubstr("JAX's list of devices as it is"));
  // One device, and one that fills no chip.
  EXPECT_THAT(Order("v7x-2x2x1", {1}, &rule), ElementsAre(0));
  EXPECT_THAT(rule, HasSubstr("the first device; 7 devices idle"));
  EXPECT_THAT(Wrong("v7x-2x2x1", {3}), HasSubstr("3 partitions do not fill chips of 2 devices"));
}

TEST(DeviceOrderTest, MegacoreChipsAreOneDevice) {
  // 16 x 4 on 4x4x4: the last axis is x, the first y and z with z minor.
  const std::vector<int64_t> order = Order("v5p-4x4x4", {16, 4});
  for (int64_t i = 0; i < 64; ++i) {
    const int64_t x = i % 4, z = i / 4 % 4, y = i / 16;
    EXPECT_EQ(order[i], x + 4 * (y + 4 * z));
  }
  // Before JAX 0.11.1 no fixed order for 2x2x2: z minor, then y.
  const Config small = LoadConfig("v5p-2x2x2", {}).value();
  EXPECT_THAT(DeviceOrder(small, {8}, "0.10.2", nullptr).value(),
              ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  EXPECT_THAT(Order("v5p-2x2x2", {8}), ElementsAre(0, 1, 3, 2, 6, 7, 5, 4));
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

// create_hybrid_device_mesh([2, 4], [2, 1]) over two slices of 4x2 chips: the data axis of four
// goes over the slices first; in each the order is that of a 2x4 mesh on one slice, 0 1 2 3 / 7 6 5
// 4.
TEST(DeviceOrderTest, SlicesDivideTheLeadingAxes) {
  const Config config = LoadConfig("2x(v5e-4x2)", {}).value();
  std::string rule;
  EXPECT_THAT(DeviceOrder(config, {4, 4}, /*jax=*/"", &rule).value(),
              ElementsAre(0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12));
  EXPECT_THAT(rule, HasSubstr("create_hybrid_device_mesh order of 2 slices over mesh 4x4"));
  // An axis of one leaves the slices to the next.
  EXPECT_THAT(DeviceOrder(config, {1, 16}, /*jax=*/"", nullptr).value(),
              ElementsAre(0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12));
  // What fits in one slice stays there.
  EXPECT_EQ(DeviceOrder(config, {2, 4}, /*jax=*/"", nullptr).value(),
            DeviceOrder(LoadConfig("v5e-4x2", {}).value(), {2, 4}, /*jax=*/"", nullptr).value());
  const Config three = LoadConfig("3x(v5e-4x2)", {}).value();
  EXPECT_THAT(Message(DeviceOrder(three, {4, 4}, /*jax=*/"", nullptr).status()),
              HasSubstr("cannot be divided among the 3 slices"));
}

TEST(DeviceOrderTest, Errors) {
  EXPECT_EQ(Wrong("v5e-4x2", {4, 4}),
            "the program has 16 partitions (mesh 4x4), v5e-4x2 has 8 devices: take a larger slice "
            "or a smaller mesh");
  EXPECT_THAT(Wrong("v5e-4x2", {1000000000000, 1000000000000, 1000000000000}),
              HasSubstr("v5e-4x2 has 8 devices"));
  EXPECT_THAT(Wrong("v5e-4x2", {5}), HasSubstr("5 of the 8 devices of v5e-4x2 do not form a box"));
  EXPECT_THAT(Wrong("v5e-4x2", {0}), HasSubstr("at least one device"));
  EXPECT_THAT(Wrong("v5e-4x2", {-2, -4}), HasSubstr("at least one device"));
}

TEST(MeshAssignmentTest, TheLastAxisChoosesFirstAndTakesTheMostAxes) {
  // 4x4x16 as 16 x 16: the last axis gets the 4x4 plane, the first gets z.
  const auto whole = AssignWholeAxes({4, 4, 16}, {16, 16}, /*last_first=*/false);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(*whole, (MeshAssignment{{1, 4}, {1, 4}, {16, 1}}));
  EXPECT_FALSE(AssignWholeAxes({4, 4, 16}, {8, 32}, /*last_first=*/false).has_value());
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
