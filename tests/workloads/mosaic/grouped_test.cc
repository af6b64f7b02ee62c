#include "workloads/mosaic/grouped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "mosaic_test_util.h"
#include "workloads/mosaic/assembly.h"

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;

// 64 rows in tiles of 16, three groups with a matrix each.
class GroupedTest : public ::testing::Test {
 protected:
  GroupedTest() : module_(ReadBody(BodyBytes("grouped_text")).value()) {
    // The count of steps, offsets, groups, tiles; rows and matrices.
    call_.operands = {{{}, 4}, {{4}, 4}, {{6}, 4}, {{6}, 4}, {{64, 128}, 2}, {{3, 128, 256}, 2}};
    call_.results = {{{64, 256}, 4}};
    call_.chip = &V5e();
    call_.weights = {1e-14, 1e-10, 1e-9, 1e-9, 1e-12, 1e-11};
  }
  // The call with groups of about equal size.
  GroupedCall Equal() {
    const std::optional<GroupedProduct> found = FindGroups(*module_, call_);
    return WithSizes(*found, call_, EqualSizes(*found, found->rows));
  }
  static const std::vector<int64_t>& Table(const GroupedCall& made, size_t operand) {
    return made.call.operands[operand].table->values;
  }

  std::unique_ptr<Module> module_;
  Call call_;
};

TEST_F(GroupedTest, GroupsOfEqualSizeMakeItsTables) {
  const std::optional<GroupedProduct> found = FindGroups(*module_, call_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->axis, 1);
  EXPECT_EQ(found->groups, 3);
  EXPECT_EQ(found->rows, 64);
  EXPECT_EQ(found->tile, 16);
  // Rows 0-20, 21-41 and 42-63: tiles 1 and 2 belong to two groups each.
  const GroupedCall made = Equal();
  EXPECT_EQ(made.steps, 6);
  EXPECT_THAT(Table(made, 0), ElementsAre(6));
  EXPECT_THAT(Table(made, 1), ElementsAre(0, 21, 42, 64));
  EXPECT_THAT(Table(made, 2), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(Table(made, 3), ElementsAre(0, 1, 1, 2, 2, 3));
}

TEST_F(GroupedTest, GroupsHaveTheirSizes) {
  GroupedProduct found = *FindGroups(*module_, call_);
  // The first group has rows 0 to 39, in tiles 0 to 2, the second none, the third rows 40 to 49, in
  // tiles 2 and 3. The last 14 rows are in no group, so that no step multiplies them.
  GroupedCall made = WithSizes(found, call_, {40, 0, 10});
  EXPECT_EQ(made.steps, 5);
  EXPECT_THAT(Table(made, 1), ElementsAre(0, 40, 40, 50));
  EXPECT_THAT(Table(made, 2), ElementsAre(0, 0, 0, 2, 2, 2));
  EXPECT_THAT(Table(made, 3), ElementsAre(0, 1, 2, 2, 3, 3));
  // A kernel whose results are the groups' clears that of a group without rows.
  EXPECT_FALSE(found.visits_empty);
  found.visits_empty = true;
  made = WithSizes(found, call_, {40, 0, 10});
  EXPECT_EQ(made.steps, 6);
  EXPECT_THAT(Table(made, 2), ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(Table(made, 3), ElementsAre(0, 1, 2, 2, 2, 3));
  // More rows than there are, and none at all.
  EXPECT_THAT(Table(WithSizes(found, call_, {60, 60, 60}), 1), ElementsAre(0, 60, 64, 64));
  found.visits_empty = false;
  EXPECT_EQ(WithSizes(found, call_, {0, 0, 0}).steps, 0);
}

TEST_F(GroupedTest, ABlockThatStaysMovesOnce) {
  const tpusim::KernelCost cost = PriceOf(*module_, Equal().call).value();
  EXPECT_TRUE(cost.loops().empty());
  ASSERT_EQ(cost.products_size(), 1);
  EXPECT_EQ(cost.products(0).count(), 6);
  // A matrix for each group, rows and results for each change of tile, the tables.
  const int64_t tables = (4 + 6 + 6) * 4;
  EXPECT_EQ(cost.bytes_accessed(),
            3 * 128 * 256 * 2 + 4 * 16 * 128 * 2 + 4 * 16 * 256 * 4 + tables);
  // Of which nothing is known, the axis is a loop.
  EXPECT_EQ(PriceOf(*module_, call_)->loops_size(), 1);
}

TEST_F(GroupedTest, NoGroupEndsWithATile) {
  call_.operands[4].shape = {48, 128};
  call_.results[0].shape = {48, 256};
  call_.operands[2].shape = call_.operands[3].shape = {5};
  const GroupedCall made = Equal();
  EXPECT_EQ(made.steps, 5);
  EXPECT_THAT(Table(made, 1), ElementsAre(0, 24, 40, 48));
  // Half of the next group goes over where it is smaller than a tile; the last one ends where rows
  // do.
  const GroupedProduct found = *FindGroups(*module_, call_);
  EXPECT_THAT(OffTiles(found, {32, 4, 12}), ElementsAre(34, 2, 12));
  EXPECT_THAT(OffTiles(found, {0, 16, 32}), ElementsAre(0, 24, 24));
}

// Devices that hold a matrix of six each have the tables of all groups, and the number of their
// first one.
TEST_F(GroupedTest, GroupsMayBeElsewhere) {
  call_.operands[1].shape = {7};
  call_.operands[2].shape = call_.operands[3].shape = {9};
  EXPECT_FALSE(FindGroups(*module_, call_).has_value());  // there is no first one
  GroupedProduct found;
  found.rows = 64, found.tile = 16, found.groups = 3, found.all_groups = 6;
  found.counts = {0}, found.offsets = {1}, found.group_of_step = 2, found.tile_of_step = 3;
  EXPECT_THAT(EqualSizes(found, 64), ElementsAre(10, 11, 11));
  const GroupedCall made = WithSizes(found, call_, {10, 11, 11});
  // Rows 0-9, 10-20, 21-31: tile 0, tiles 0 and 1, tile 1.
  EXPECT_EQ(made.steps, 4);
  EXPECT_THAT(Table(made, 1), ElementsAre(0, 10, 21, 32, 32, 32, 32));
}

// A kernel whose grid says nothing has a pipeline of its own, over the tables that it is given.
TEST_F(GroupedTest, APipelineOfTheKernelHasItsTables) {
  const auto attention = ReadBody(BodyBytes("attention_text")).value();
  call_.operands[0].shape = {1};
  const std::optional<GroupedProduct> found = FindGroups(*attention, call_);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->axis.has_value());
  EXPECT_EQ(found->groups, 3);
  const GroupedCall made = WithSizes(*found, call_, EqualSizes(*found, found->rows));
  EXPECT_EQ(made.steps, 6);
  EXPECT_THAT(Table(made, 0), ElementsAre(6));
  EXPECT_THAT(Table(made, 3), ElementsAre(0, 1, 1, 2, 2, 3));
  call_.operands[5].shape = {4, 128, 256};
  EXPECT_FALSE(FindGroups(*attention, call_).has_value());
}

TEST_F(GroupedTest, OtherTablesAndKnownCountsAreLeftAlone) {
  Call other = call_;
  other.operands[3].shape = {7};
  EXPECT_FALSE(FindGroups(*module_, other).has_value());
  Call known = call_;
  known.operands[0].table = std::make_shared<const mosaic::Table>(mosaic::Table{{}, {5}});
  EXPECT_FALSE(FindGroups(*module_, known).has_value());
}

}  // namespace
}  // namespace tpusim::mosaic
