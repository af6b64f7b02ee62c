#include "workloads/spmd/reshard_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/spmd/spmd_test_util.h"
#include "workloads/spmd/reshard.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::Mesh;
using sharding::Sharding;

// f32[8,8], 256 bytes, unless a test says otherwise; X = 4, Y = 2.
class ReshardPlanTest : public testing::Test {
 protected:
  std::string Plan(const Sharding& from, const Sharding& to) { return Plan(F32({8, 8}), from, to); }
  std::string Plan(const hlo::Shape& shape, const Sharding& from, const Sharding& to) {
    const auto plan = PlanReshard(shape, from, to, mesh_, latency_);
    if (!plan.ok()) return Message(plan.status());
    full_gather_ = plan->full_gather;
    return ToString(*plan, mesh_);
  }

  Mesh mesh_ = MeshOf({4, 2});
  ReshardLatency latency_ = kV5eLatency;
  Axes x_ = {{0, 1, 4}}, y_ = {{1, 1, 2}};
  Axes xy_ = {{0, 1, 4}, {1, 1, 2}}, yx_ = {{1, 1, 2}, {0, 1, 4}};
  bool full_gather_ = false;
};

TEST_F(ReshardPlanTest, EqualPlacementsNeedNothing) {
  EXPECT_EQ(Plan(Split({x_, {}}), Split({x_, {}})), "");
  // X cut in two pieces is X.
  EXPECT_EQ(Plan(Split({x_, {}}), Split({{{0, 1, 2}, {0, 2, 2}}, {}})), "");
}

TEST_F(ReshardPlanTest, ReplicatedToSplitIsASlice) {
  EXPECT_EQ(Plan(Split({{}, {}}), Split({x_, y_})), "slice to [{X}, {Y}]\n");
}

TEST_F(ReshardPlanTest, SplitToReplicatedIsAGather) {
  // A shard has 64 bytes; three others arrive.
  EXPECT_EQ(Plan(Split({x_, {}}), Split({{}, {}})), "all-gather 0 over X (192 bytes)\n");
  EXPECT_FALSE(full_gather_);  // the program asked for it
}

TEST_F(ReshardPlanTest, OnlyMinorAxesAreGathered) {
  // 256 / 8 = 32 bytes, one other.
  EXPECT_EQ(Plan(Split({xy_, {}}), Split({x_, {}})), "all-gather 0 over Y (32 bytes)\n");
}

TEST_F(ReshardPlanTest, AxesMoveByAllToAll) {
  // 64 bytes go a quarter of the ring of four far: one link.
  EXPECT_EQ(Plan(Split({x_, {}}), Split({{}, x_})), "all-to-all 0->1 over X (64 bytes)\n");
}

TEST_F(ReshardPlanTest, AnotherOrderIsAPermute) {
  EXPECT_EQ(Plan(Split({xy_, {}}), Split({yx_, {}})),
            "collective-permute to [{Y,X}, {}] (32 bytes)\n");
}

TEST_F(ReshardPlanTest, ExchangedAxesCostLessThanGathers) {
  // The minor half of X to dimension 1 (1/2 of 512 KiB): then both have as many shards as
  // wanted, and change devices (512). With a gather of Y first (512), X moves 1024.
  const auto plan =
      PlanReshard(F32({1024, 1024}), Split({x_, y_}), Split({y_, x_}), mesh_, latency_);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->bytes, Bytes(768 * 1024));
  EXPECT_FALSE(plan->full_gather);
}

TEST_F(ReshardPlanTest, PartialSumsAreScatteredWhereTheResultAsks) {
  // 3/4 of 256 bytes.
  EXPECT_EQ(Plan(Split({{}, {}}, x_), Split({x_, {}})), "reduce-scatter 0 over X (192 bytes)\n");
  // Otherwise twice that.
  EXPECT_EQ(Plan(Split({{}, {}}, x_), Split({{}, {}})), "all-reduce over X (384 bytes)\n");
}

TEST_F(ReshardPlanTest, SmallSumsAreAddedUpAtOnce) {
  // 2 * 7/8 of 256 bytes in one collective; of 4 MiB 3/4 are scattered, and 1 MiB is left.
  const Sharding from = Split({{}, {}}, xy_), to = Split({x_, {}});
  EXPECT_EQ(Plan(from, to), "all-reduce over X,Y (448 bytes)\nslice to [{X}, {}]\n");
  EXPECT_EQ(Plan(F32({1024, 1024}), from, to),
            "reduce-scatter 0 over X (3145728 bytes)\nall-reduce over Y (1048576 bytes)\n");
}

TEST_F(ReshardPlanTest, SlicesComeBeforeSums) {
  // 128 bytes are left to be added up.
  EXPECT_EQ(Plan(Split({{}, {}}, x_), Split({y_, {}})),
            "slice to [{Y}, {}] unreduced={X}\nall-reduce over X (192 bytes)\n");
}

TEST_F(ReshardPlanTest, SumsAreScatteredAfterOtherAxesMadeRoom) {
  // 512 KiB of partial sums. Added up first they would be 768 KiB on the wire, and a permute
  // of 128; here Y moves to the other dimension (half of 512), and 3/4 of 512 are summed.
  EXPECT_EQ(Plan(F32({512, 512}), Split({{}, y_}, x_), Split({y_, x_})),
            "all-to-all 1->0 over Y (262144 bytes)\nreduce-scatter 1 over X (393216 bytes)\n");
  EXPECT_FALSE(full_gather_);
}

TEST_F(ReshardPlanTest, SumsThatStayMoveWithTheirShards) {
  // Y to Z, both of four, of a value that is and stays partial over X.
  mesh_ = MeshOf({2, 4, 4});
  const Axes x = {{0, 1, 2}}, y = {{1, 1, 4}}, z = {{2, 1, 4}};
  const Sharding from = Split({y}, x), to = Split({z}, x);
  EXPECT_EQ(Plan(F32({1024 * 1024}), from, to),
            "collective-permute to [{Z}] unreduced={X} (1048576 bytes)\n");
  // Partitions 0-15 hold the one part, 16-31 the other. Of each four have what they want.
  int64_t moved = 0;
  for (const auto& [source, target] : PermutePairs(mesh_, from, to)) {
    EXPECT_EQ(source / 16, target / 16);
    moved += source != target;
  }
  EXPECT_EQ(moved, 24);
}

TEST_F(ReshardPlanTest, SumsCannotBeUndone) {
  EXPECT_NE(Plan(Split({{}, {}}), Split({{}, {}}, x_)).find("cannot become one"),
            std::string::npos);
}

TEST_F(ReshardPlanTest, PiecesOfAnAxisMove) {
  mesh_ = MeshOf({8});
  // X = 8 used as 2 x 4; shards of 256 / 8 = 32 bytes, which go one link far.
  EXPECT_EQ(Plan(Split({{{0, 1, 2}}, {{0, 2, 4}}}), Split({{{0, 1, 8}}, {}})),
            "all-to-all 1->0 over X:(2)4 (32 bytes)\n");
  EXPECT_EQ(Plan(Split({{{0, 1, 8}}, {}}), Split({{{0, 1, 2}}, {}})),
            "all-gather 0 over X:(2)4 (96 bytes)\n");
  EXPECT_EQ(Plan(Split({{{0, 1, 2}}, {}}), Split({{{0, 1, 8}}, {}})), "slice to [{X}, {}]\n");
}

TEST_F(ReshardPlanTest, TheFactorBetweenTwoAxesIsSlicedFirst) {
  // Halves over Y to quarters over X: a quarter of 4 MiB moves, not a half.
  EXPECT_EQ(Plan(F32({1024, 1024}), Split({y_, {}}), Split({x_, {}})),
            "slice to [{Y,X:(1)2}, {}]\ncollective-permute to [{X}, {}] (1048576 bytes)\n");
  EXPECT_FALSE(full_gather_);
}

// XLA's attempts, one after the other (reshard_order.h), for 256 bytes over X = 4, Y = 2.
TEST_F(ReshardPlanTest, AttemptsHaveAnOrder) {
  // Quarters to halves: 64 bytes change devices, so that X's major half is what is lost.
  EXPECT_EQ(Plan(Split({x_, {}}), Split({y_, {}})),
            "collective-permute to [{Y,X:(1)2}, {}] (64 bytes)\n"
            "all-gather 0 over X:(1)2 (64 bytes)\n");
  // The last dimension is gathered first: 32 bytes from one, then 64 from three.
  EXPECT_EQ(Plan(Split({x_, y_}), Split({{}, {}})),
            "all-gather 1 over Y (32 bytes)\nall-gather 0 over X (192 bytes)\n");
  // Minor axes go to another dimension, and devices change: (32 x 2) / 4 bytes, then 32.
  EXPECT_EQ(Plan(Split({xy_, {}}), Split({y_, x_})),
            "all-to-all 0->1 over X:(2)2,Y (32 bytes)\n"
            "collective-permute to [{Y}, {X}] (32 bytes)\n");
  EXPECT_FALSE(full_gather_);
}

TEST_F(ReshardPlanTest, TwoPairsOfDimensionsGoInOneAllToAll) {
  // 8^4 floats in eight shards of 2 KiB: (4 + 2) / 4 links.
  EXPECT_EQ(Plan(F32({8, 8, 8, 8}), Split({x_, y_, {}, {}}), Split({{}, {}, x_, y_})),
            "all-to-all 0->2, 1->3 over X,Y (3072 bytes)\n");
}

TEST_F(ReshardPlanTest, WhatNoAttemptReachesIsGatheredInFull) {
  // 128 KiB, no dimension of which has the shards that another is to have.
  EXPECT_EQ(Plan(F32({32, 32, 32}), Split({y_, {}, x_}), Split({{}, xy_, {}})),
            "all-gather 2 over X (49152 bytes)\nall-gather 0 over Y (65536 bytes)\n"
            "slice to [{}, {X,Y}, {}]\n");
  EXPECT_TRUE(full_gather_);
  // Where one stays as it is, the others are gathered beside it.
  mesh_ = MeshOf({4, 2, 2});
  const Axes z = {{2, 1, 2}};
  EXPECT_EQ(Plan(F32({32, 32, 32, 32}), Split({z, y_, {}, x_}), Split({z, {}, xy_, {}})),
            "all-gather 3 over X (786432 bytes)\nall-gather 1 over Y (1048576 bytes)\n"
            "slice to [{Z}, {}, {X,Y}, {}]\n");
  EXPECT_FALSE(full_gather_);
}

TEST_F(ReshardPlanTest, PiecesThatDoNotNestAreGathered) {
  mesh_ = MeshOf({6});
  // Halves to thirds of six elements: the other half arrives, 12 bytes.
  EXPECT_EQ(Plan(F32({6}), Split({{{0, 1, 2}}}), Split({{{0, 1, 3}}})),
            "all-gather 0 over X:(1)2 (12 bytes)\nslice to [{X:(1)3}]\n");
  EXPECT_TRUE(full_gather_);
}

TEST_F(ReshardPlanTest, UnevenShardsArePaddedToTheCeiling) {
  // Ten elements over four: shards of 3, 12 bytes each.
  EXPECT_EQ(Plan(F32({10}), Split({x_}), Split({{}})), "all-gather 0 over X (36 bytes)\n");
  EXPECT_EQ(Plan(F32({10}), Split({{}}), Split({x_})), "slice to [{X}]\n");
  // [10,8]: 3 x 8 x 4 = 96 bytes, one link.
  EXPECT_EQ(Plan(F32({10, 8}), Split({x_, {}}), Split({{}, x_})),
            "all-to-all 0->1 over X (96 bytes)\n");
  // The split dimension is padded too: [8,10] in shards of 2 x 10; what a device gets
  // is 8 x 3. Counted are the 80 bytes before padding.
  EXPECT_EQ(Plan(F32({8, 10}), Split({x_, {}}), Split({{}, x_})),
            "all-to-all 0->1 over X (80 bytes)\n");
}

TEST_F(ReshardPlanTest, ShardsThatDoNotNestAreRefitted) {
  EXPECT_TRUE(Nested(16, 4, 8));   // 4 = 2 x 2
  EXPECT_FALSE(Nested(10, 4, 8));  // 3 against 2 x 2
  EXPECT_TRUE(Nested(10, 1, 8));   // the whole is padded
  // Blocks [0,3) [3,6) [6,9) [9,10) become [0,2) [2,4) ... [8,10): device 1 lacks element 3,
  // device 3 elements 6 and 7, device 4 element 9. Three pieces of two elements, one link
  // each: 24 bytes over eight devices.
  EXPECT_EQ(Plan(F32({10}), Split({x_}), Split({xy_})), "refit 0 to [{X,Y}] (3 bytes)\n");
  EXPECT_FALSE(full_gather_);
  // Back, every device lacks something: pieces of 2 over 6 links, of 2 over 4 and of 1
  // over 3, 23 elements in all.
  EXPECT_EQ(Plan(F32({10}), Split({xy_}), Split({x_})), "refit 0 to [{X}] (12 bytes)\n");
  // Reduce-scatter over Y would need the same: sums of 12 bytes over Y first.
  EXPECT_EQ(Plan(F32({10}), Split({x_}, y_), Split({xy_})),
            "all-reduce over Y (12 bytes)\nrefit 0 to [{X,Y}] (3 bytes)\n");
}

TEST_F(ReshardPlanTest, MorePartsThanElements) {
  EXPECT_EQ(Plan(F32({4}), Split({xy_}), Split({{}})), "all-gather 0 over X,Y (28 bytes)\n");
  // Twice 7/8 of the 12 bytes that exist are less than those of seven others.
  EXPECT_EQ(Plan(F32({3}), Split({xy_}), Split({{}})), "sum of parts 0 over X,Y (21 bytes)\n");
  // Three rows of 400,000 bytes over sixteen: shards of one, the last 13 empty. Fifteen others
  // would send 6 MB; an all-reduce of the 1.2 MB that exist has 2 * 15/16 * 1.2 = 2.25.
  mesh_ = MeshOf({16});
  EXPECT_EQ(Plan(F32({3, 100000}), Split({{{0, 1, 16}}, {}}), Split({{}, {}})),
            "sum of parts 0 over X (2250000 bytes)\n");
}

TEST_F(ReshardPlanTest, PlansAreKept) {
  ReshardPlans plans(mesh_, latency_);
  const auto first = plans.Find(F32({8, 8}), Split({x_, {}}), Split({{}, x_}));
  const auto again = plans.Find(F32({8, 8}), Split({x_, {}}), Split({{}, x_}));
  const auto other = plans.Find(F32({8, 16}), Split({x_, {}}), Split({{}, x_}));
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_EQ((*first)->bytes, Bytes(64));
  EXPECT_EQ((*other)->bytes, Bytes(128));
}

}  // namespace
}  // namespace tpusim::spmd
