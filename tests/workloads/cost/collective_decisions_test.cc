// Whether a program would meet the same collectives on another slice.
#include "workloads/cost/collective_decisions.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/workloads/passes/small_module.h"

namespace tpusim::cost {
namespace {

using passes::SmallModule;

// Partitions 0 and 1 add up a megabyte, as do 2 and 3.
hlo::Instruction* AllReduceOfPairs(SmallModule& m) {
  hlo::Instruction* sum = m.Add(hlo::Opcode::kAllReduce, {512, 512}, {m.Parameter({512, 512})});
  for (const int64_t first : {0, 2}) {
    auto* group = sum->mutable_attrs().add_replica_groups();
    group->add_replica_ids(first);
    group->add_replica_ids(first + 1);
  }
  sum->mutable_attrs().set_channel_id(1);
  sum->mutable_attrs().set_use_global_device_ids(true);
  return sum;
}

class CollectiveDecisionsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(here_.Find(*sum_).ok()); }

  SmallModule small_{"v5e-4x4"}, large_{"v5e-8x8"};
  hlo::Instruction* const sum_ = AllReduceOfPairs(small_);
  // Neighbours along x.
  CollectiveDecisions here_{small_.target().config(), {0, 1, 4, 5}};
};

TEST_F(CollectiveDecisionsTest, NeighboursOfALargerSliceAreNeighbours) {
  CollectiveDecisions there(large_.target().config(), {0, 1, 8, 9});
  EXPECT_TRUE(here_.SameIn(there));
  // What was decided there on the way is what it would have decided itself.
  const auto moved = there.Find(*sum_);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ((*moved)->request.groups, *GroupsOf(*sum_, {0, 1, 8, 9}));
  CollectiveDecisions itself(large_.target().config(), {0, 1, 8, 9});
  const auto own = itself.Find(*sum_);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(collectives::UseOf(*(*moved)->decision).time,
            collectives::UseOf(*(*own)->decision).time);
}

TEST_F(CollectiveDecisionsTest, ThoseFurtherApartAreOthers) {
  CollectiveDecisions there(large_.target().config(), {0, 2, 8, 10});
  EXPECT_FALSE(here_.SameIn(there));
}

TEST_F(CollectiveDecisionsTest, WhetherALineIsAllOfTheSliceCountsWhereItWasAsked) {
  CollectiveDecisions line(small_.target().config(), {0, 1, 2, 3});
  CollectiveDecisions part_of_line(large_.target().config(), {0, 1, 2, 3});
  ASSERT_TRUE(line.Find(*sum_).ok());
  EXPECT_TRUE(line.SameIn(part_of_line));
  EXPECT_EQ(line.FilledExtents({0, 1, 2, 3}), std::vector<int64_t>{4});
  EXPECT_TRUE(part_of_line.FilledExtents({0, 1, 2, 3}).empty());
  EXPECT_FALSE(line.SameIn(part_of_line));
}

}  // namespace
}  // namespace tpusim::cost
