#include "workloads/spmd/emit/builder.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "tests/workloads/spmd/spmd_test_util.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using sharding::Axes;
using sharding::Mesh;

// Returns the value on one partition of a scalar made of partition-id.
int64_t Evaluate(const Instruction* value, int64_t partition) {
  const auto operand = [&](size_t i) { return Evaluate(value->operand(i), partition); };
  switch (value->opcode()) {
    case Opcode::kPartitionId:
      return partition;
    case Opcode::kConstant:
      return *hlo::ScalarIntConstant(*value);
    case Opcode::kAdd:
      return operand(0) + operand(1);
    case Opcode::kMultiply:
      return operand(0) * operand(1);
    case Opcode::kDivide:
      return operand(0) / operand(1);
    case Opcode::kRemainder:
      return operand(0) % operand(1);
    case Opcode::kConvert:
    case Opcode::kReshape:
      return operand(0);
    case Opcode::kDynamicSlice:
      return hlo::IntElements(value->operand(0)->attrs().literal())->at(operand(1));
    default:
      ADD_FAILURE() << "no rule for " << value->Describe();
      return -1;
  }
}

class BuilderTest : public testing::Test {
 protected:
  Builder& Use(Mesh mesh) {
    mesh_ = std::move(mesh);
    module_ = std::make_unique<hlo::Module>("test");
    builder_.emplace(module_->AddComputation("main"), mesh_);
    return *builder_;
  }
  Instruction* Value(std::vector<int64_t> dims) {
    return builder_->computation()->AddParameter(parameters_++, F32(std::move(dims)), "p");
  }

  Mesh mesh_;
  std::unique_ptr<hlo::Module> module_;
  std::optional<Builder> builder_;
  int64_t parameters_ = 0;
};

TEST_F(BuilderTest, CoordinatesAreShardNumbers) {
  const Axes x = {{0, 1, 4}}, y = {{1, 1, 2}}, yx = {{1, 1, 2}, {0, 1, 4}};
  const Axes piece = {{0, 2, 2}}, mixed = {{0, 2, 2}, {1, 1, 2}, {0, 1, 2}};
  for (const std::vector<int64_t>& ids :
       {std::vector<int64_t>{}, std::vector<int64_t>{3, 1, 4, 0, 5, 7, 2, 6}}) {
    Builder& builder = Use(MeshOf({4, 2}, ids));
    const std::vector<int64_t> positions = sharding::PositionOfPartition(mesh_);
    for (const Axes& axes : {x, y, yx, piece, mixed, Axes{}}) {
      const Instruction* coordinate = builder.Coordinate(axes);
      const Instruction* offset = builder.Offset(axes, 5);
      for (int64_t partition = 0; partition < 8; ++partition) {
        const int64_t expected = ShardIndex(mesh_, axes, positions[partition]);
        EXPECT_EQ(Evaluate(coordinate, partition), expected);
        EXPECT_EQ(Evaluate(offset, partition), 5 * expected);
      }
    }
  }
}

TEST_F(BuilderTest, ACoordinateByHand) {
  // Position 5 of 4 x 2 is x = 2, y = 1: along (Y, X) shard 1 * 4 + 2.
  Builder& builder = Use(MeshOf({4, 2}));
  EXPECT_EQ(Evaluate(builder.Coordinate({{1, 1, 2}, {0, 1, 4}}), 5), 6);
  // The minor half of X, x mod 2.
  EXPECT_EQ(Evaluate(builder.Coordinate({{0, 2, 2}}), 6), 1);  // x = 3
}

TEST_F(BuilderTest, GroupsAlongAPieceOfAnAxis) {
  Builder& builder = Use(MeshOf({8}));
  // X = 8 as 2 x 4: the major piece pairs devices that are four apart.
  const Instruction* major = builder.AllGather(Value({4}), {{0, 1, 2}}, 0);
  EXPECT_EQ(hlo::ReplicaGroups(*major, 8).value(),
            (std::vector<std::vector<int64_t>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(hlo::FrontendAttribute(*major, "tpusim.axes"), "X:(1)2");
  const Instruction* minor = builder.AllGather(Value({4}), {{0, 2, 4}}, 0);
  EXPECT_EQ(hlo::ReplicaGroups(*minor, 8).value(),
            (std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(minor->shape().dims, (std::vector<int64_t>{16}));
}

TEST_F(BuilderTest, AllToAllMovesTheSplit) {
  Builder& builder = Use(MeshOf({4}));
  const Instruction* moved = builder.AllToAll(Value({2, 8, 3}), {{0, 1, 4}}, 1, 0);
  EXPECT_EQ(moved->shape().dims, (std::vector<int64_t>{8, 2, 3}));
}

TEST_F(BuilderTest, MaskNeedsNothingForEvenShards) {
  Builder& builder = Use(MeshOf({4}));
  Instruction* value = Value({2});
  EXPECT_EQ(builder.Mask(value, 0, {{0, 1, 4}}, 8, nullptr), value);
}

TEST_F(BuilderTest, MaskReplacesWhatIsBehindTheEnd) {
  Builder& builder = Use(MeshOf({4}));
  // Ten elements in shards of three: index + 3 * shard < 10.
  Instruction* fill = builder.Zero(hlo::PrimitiveType::kF32);
  const Instruction* masked = builder.Mask(Value({3}), 0, {{0, 1, 4}}, 10, fill);
  ASSERT_EQ(masked->opcode(), Opcode::kSelect);
  EXPECT_EQ(masked->operand(2)->operand(0), fill);
  const Instruction* compare = masked->operand(0);
  ASSERT_EQ(compare->opcode(), Opcode::kCompare);
  EXPECT_EQ(compare->attrs().comparison_direction(), "LT");
  EXPECT_EQ(Evaluate(compare->operand(1)->operand(0), 0), 10);
  const Instruction* index = compare->operand(0);
  EXPECT_EQ(index->operand(0)->opcode(), Opcode::kIota);
  EXPECT_EQ(Evaluate(index->operand(1)->operand(0), 3), 9);
}

TEST_F(BuilderTest, ResizePadsOrCuts) {
  Builder& builder = Use(MeshOf({4}));
  Instruction* value = Value({2, 3});
  EXPECT_EQ(builder.Resize(value, 1, 3), value);
  const Instruction* longer = builder.Resize(value, 1, 5);
  EXPECT_EQ(longer->opcode(), Opcode::kPad);
  EXPECT_EQ(hlo::GetPadding(*longer)[1], (hlo::PaddingDim{0, 2, 0}));
  const Instruction* shorter = builder.Resize(value, 1, 1);
  EXPECT_EQ(shorter->opcode(), Opcode::kSlice);
  EXPECT_EQ(hlo::GetSlice(*shorter)[1], (hlo::SliceDim{0, 1, 1}));
}

}  // namespace
}  // namespace tpusim::spmd
