#include "workloads/mosaic/balanced.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "mosaic_test_util.h"
#include "workloads/mosaic/assembly.h"

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;

// 64 rows in tiles of 16, three groups with a matrix each.
class GroupedProduct : public ::testing::Test {
 protected:
  GroupedProduct() : module_(ReadBody(BodyBytes("grouped_text")).value()) {
    // The count of steps, offsets, groups, tiles; rows and matrices.
    call_.operands = {{{}, 4}, {{4}, 4}, {{6}, 4}, {{6}, 4}, {{64, 128}, 2}, {{3, 128, 256}, 2}};
    call_.results = {{{64, 256}, 4}};
    call_.chip = &V5e();
    call_.weights = {1e-14, 1e-10, 1e-9, 1e-9, 1e-12, 1e-11};
  }
  std::unique_ptr<Module> module_;
  Call call_;
};

TEST_F(GroupedProduct, GroupsOfEqualSizeMakeItsTables) {
  const std::optional<BalancedCall> found = Balanced(*module_, call_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->axis, 1);
  EXPECT_EQ(found->groups, 3);
  // Rows 0-20, 21-41 and 42-63: tiles 1 and 2 belong to two groups each.
  EXPECT_EQ(found->steps, 6);
  const auto values = [&](size_t n) { return found->call.operands[n].table->values; };
  EXPECT_THAT(values(0), ElementsAre(6));
  EXPECT_THAT(values(1), ElementsAre(0, 21, 42, 64));
  EXPECT_THAT(values(2), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(values(3), ElementsAre(0, 1, 1, 2, 2, 3));
}

TEST_F(GroupedProduct, ABlockThatStaysMovesOnce) {
  const tpusim::KernelCost cost = PriceOf(*module_, Balanced(*module_, call_)->call).value();
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

TEST_F(GroupedProduct, NoGroupEndsWithATile) {
  call_.operands[4].shape = {48, 128};
  call_.results[0].shape = {48, 256};
  call_.operands[2].shape = call_.operands[3].shape = {5};
  const std::optional<BalancedCall> found = Balanced(*module_, call_);
  EXPECT_EQ(found->steps, 5);
  EXPECT_THAT(found->call.operands[1].table->values, ElementsAre(0, 24, 40, 48));
}

// A kernel whose grid says nothing has a pipeline of its own, over the tables that it is given.
TEST_F(GroupedProduct, APipelineOfTheKernelHasItsTables) {
  const auto attention = ReadBody(BodyBytes("attention_text")).value();
  call_.operands[0].shape = {1};
  const std::optional<BalancedCall> found = Balanced(*attention, call_);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->axis.has_value());
  EXPECT_EQ(found->groups, 3);
  EXPECT_EQ(found->steps, 6);
  EXPECT_THAT(found->call.operands[0].table->values, ElementsAre(6));
  EXPECT_THAT(found->call.operands[3].table->values, ElementsAre(0, 1, 1, 2, 2, 3));
  call_.operands[5].shape = {4, 128, 256};
  EXPECT_FALSE(Balanced(*attention, call_).has_value());
}

TEST_F(GroupedProduct, OtherTablesAndKnownCountsAreLeftAlone) {
  Call other = call_;
  other.operands[3].shape = {7};
  EXPECT_FALSE(Balanced(*module_, other).has_value());
  Call known = call_;
  known.operands[0].table = std::make_shared<const Table>(Table{{}, {5}});
  EXPECT_FALSE(Balanced(*module_, known).has_value());
}

}  // namespace
}  // namespace tpusim::mosaic
