#include "workloads/spmd/partition.h"

#include <gtest/gtest.h>

#include "tests/workloads/spmd/spmd_test_util.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using sharding::Axes;
using sharding::Sharding;

const Axes kX = {{0, 1, 4}}, kY = {{1, 1, 2}}, kXY = {{0, 1, 4}, {1, 1, 2}};

std::vector<const Instruction*> Find(const PartitionResult& result, Opcode opcode) {
  std::vector<const Instruction*> found;
  for (const Instruction* instruction : result.module->entry()->PostOrder()) {
    if (instruction->opcode() == opcode) found.push_back(instruction);
  }
  return found;
}

PartitionResult Partitioned(const sharding::ShardedModule& sharded) {
  auto result = Partition(sharded, kV5eLatency);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

TEST(Partition, ShardsOfElementwiseOps) {
  SmallSharded m(MeshOf({4, 2}));
  Instruction* p = m.Parameter(F32({8, 6}), Split({kX, kY}));
  const PartitionResult result =
      Partitioned(m.Return(m.Add(Opcode::kNegate, F32({8, 6}), {p}, Split({kX, kY}))));
  EXPECT_EQ(result.module->entry()->root()->shape().dims, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(Find(result, Opcode::kPartitionId).empty());
  EXPECT_TRUE(result.warnings.empty());
}

TEST(Partition, AConstraintIsAReshard) {
  SmallSharded m(MeshOf({4, 2}));
  Instruction* p = m.Parameter(F32({8, 8}), Split({kX, {}}));
  const PartitionResult result = Partitioned(m.Return(m.Constraint(p, Split({{}, kX}))));
  const auto moves = Find(result, Opcode::kAllToAll);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(hlo::ReplicaGroups(*moves[0], 8).value(),
            (std::vector<std::vector<int64_t>>{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(hlo::FrontendAttribute(*moves[0], "tpusim.axes"), "X");
  EXPECT_EQ(result.module->entry()->root()->shape().dims, (std::vector<int64_t>{8, 2}));
}

TEST(Partition, ASecondRequestSharesTheFirstReshard) {
  SmallSharded m(MeshOf({4, 2}));
  Instruction* p = m.Parameter(F32({8}), Split({kX}));
  Instruction* a = m.Constraint(p, Split({{}}));
  Instruction* b = m.Constraint(p, Split({{}}));
  const PartitionResult result =
      Partitioned(m.Return(m.Add(Opcode::kAdd, F32({8}), {a, b}, Split({{}}))));
  EXPECT_EQ(Find(result, Opcode::kAllGather).size(), 1u);
}

TEST(Partition, TheNearestFormIsTheSource) {
  // Replicated, then split, then replicated again: nothing moves.
  SmallSharded m(MeshOf({4, 2}));
  Instruction* p = m.Parameter(F32({8}), Split({{}}));
  Instruction* split = m.Constraint(p, Split({kX}));
  Instruction* whole = m.Constraint(split, Split({{}}));
  Instruction* twice = m.Add(Opcode::kNegate, F32({8}), {split}, Split({kX}));
  Instruction* sum = m.Add(Opcode::kAdd, F32({8}), {twice, whole}, Split({kX}));
  const PartitionResult result = Partitioned(m.Return(sum));
  EXPECT_TRUE(Find(result, Opcode::kAllGather).empty());
  EXPECT_EQ(Find(result, Opcode::kDynamicSlice).size(), 1u);
}

TEST(Partition, PartialMaximaStayMaxima) {
  // The maxima of two columns of which every device has some rows, split over X and then
  // wanted whole: 2 * 3/4 * 8 bytes from the partial results, 3 * 4 bytes from the split
  // ones. Whichever is taken, no maxima are added up.
  SmallSharded m(MeshOf({4, 2}));
  Instruction* p = m.Parameter(F32({8, 2}), Split({kX, {}}));
  Instruction* zero = m.Add(Opcode::kConstant, F32({}), {}, Split({}));
  *zero->mutable_attrs().mutable_literal() = hlo::MakeScalarLiteral(hlo::PrimitiveType::kF32, 0);
  Instruction* most = m.Add(Opcode::kReduce, F32({2}), {p, zero}, Split({kX}));
  hlo::SetDimensions(most, {0});
  hlo::Computation* region = most->parent()->parent()->AddComputation("max");
  Instruction* a = region->AddParameter(0, F32({}), "a");
  Instruction* b = region->AddParameter(1, F32({}), "b");
  region->set_root(region->Add(Opcode::kMaximum, F32({}), {a, b}));
  most->set_called({region});
  const PartitionResult result = Partitioned(m.Return(m.Constraint(most, Split({{}}))));
  std::vector<const Instruction*> sums = Find(result, Opcode::kAllReduce);
  for (const Instruction* scatter : Find(result, Opcode::kReduceScatter)) sums.push_back(scatter);
  ASSERT_FALSE(sums.empty());
  for (const Instruction* sum : sums) {
    EXPECT_EQ(sum->called()[0]->root()->opcode(), Opcode::kMaximum);
  }
}

TEST(Partition, IotasAreMadeAgain) {
  // 0, 1, ... 7 along dimension 1, split over X and wanted whole: nothing is sent.
  SmallSharded m(MeshOf({4, 2}));
  Instruction* iota = m.Add(Opcode::kIota, F32({8}), {}, Split({kX}));
  hlo::SetDimensions(iota, {0});
  Instruction* rows = m.Add(Opcode::kBroadcast, F32({2, 8}), {iota}, Split({{}, kX}));
  hlo::SetDimensions(rows, {1});
  Instruction* some = m.Add(Opcode::kNegate, F32({2, 8}), {rows}, Split({{}, kX}));
  Instruction* all = m.Constraint(rows, Split({{}, {}}));
  Instruction* sum = m.Add(Opcode::kAdd, F32({2, 8}), {some, all}, Split({{}, kX}));
  const PartitionResult result = Partitioned(m.Return(m.Constraint(sum, Split({{}, kX}))));
  EXPECT_TRUE(Find(result, Opcode::kAllGather).empty());
  EXPECT_TRUE(Find(result, Opcode::kAllReduce).empty());
}

TEST(Partition, ArgumentsAndResultsAreEven) {
  SmallSharded m(MeshOf({4, 2}));
  // Twelve over eight: X divides them, X and Y do not.
  Instruction* p = m.Parameter(F32({12}), Split({kXY}));
  const PartitionResult result =
      Partitioned(m.Return(m.Add(Opcode::kNegate, F32({12}), {p}, Split({kXY}))));
  ASSERT_EQ(result.parameter_shardings.size(), 1u);
  EXPECT_EQ(result.parameter_shardings[0], Split({kX}));
  EXPECT_EQ(result.result_shardings[0], Split({kX}));
  EXPECT_EQ(result.module->entry()->parameters()[0]->shape().dims, (std::vector<int64_t>{3}));
  EXPECT_EQ(result.module->entry()->root()->shape().dims, (std::vector<int64_t>{3}));
}

TEST(Partition, APaddedContractionIsMasked) {
  SmallSharded m(MeshOf({4, 2}));
  Instruction* p = m.Parameter(F32({6, 10}), Split({{}, {}}));
  Instruction* q = m.Parameter(F32({10, 6}), Split({{}, {}}));
  Instruction* a = m.Constraint(p, Split({{}, kX}));
  Instruction* b = m.Constraint(q, Split({kX, {}}));
  Instruction* dot = m.Add(Opcode::kDot, F32({6, 6}), {a, b}, Split({{}, {}}));
  hlo::SetDotDims(dot, {{1}, {0}, {}, {}});
  const PartitionResult result = Partitioned(m.Return(dot));
  const auto dots = Find(result, Opcode::kDot);
  ASSERT_EQ(dots.size(), 1u);
  // Three of the ten columns; padding of both operands is replaced.
  EXPECT_EQ(dots[0]->operand(0)->shape().dims, (std::vector<int64_t>{6, 3}));
  EXPECT_EQ(dots[0]->operand(0)->opcode(), Opcode::kSelect);
  EXPECT_EQ(dots[0]->operand(1)->opcode(), Opcode::kSelect);
  EXPECT_EQ(Find(result, Opcode::kAllReduce).size(), 1u);
}

TEST(Partition, InvoluntaryGathersAreReported) {
  SmallSharded m(MeshOf({6}));
  const Axes half = {{0, 1, 2}}, third = {{0, 1, 3}};
  Instruction* p = m.Parameter(F32({6}), Split({half}));
  Instruction* moved = m.Constraint(p, Split({third}));
  moved->mutable_attrs().mutable_metadata()->set_source_file("model.py");
  moved->mutable_attrs().mutable_metadata()->set_source_line(7);
  const PartitionResult result = Partitioned(m.Return(moved));
  ASSERT_EQ(result.warnings.size(), 1u);
  const std::string warning = ToString(result.warnings[0]);
  EXPECT_NE(warning.find("model.py:7"), std::string::npos) << warning;
  EXPECT_NE(warning.find("gathered in full"), std::string::npos);
  EXPECT_EQ(result.warnings[0].reason->id, "partition.gathered-in-full");
}

TEST(Partition, ADeepProgram) {
  // A hundred thousand operations, each the operand of the next.
  SmallSharded m(MeshOf({4, 2}));
  const Sharding split = Split({kX, {}});
  Instruction* value = m.Parameter(F32({8, 8}), split);
  for (int i = 0; i < 100000; ++i) value = m.Add(Opcode::kNegate, F32({8, 8}), {value}, split);
  const PartitionResult result = Partitioned(m.Return(value));
  EXPECT_EQ(result.module->entry()->size(), 100001u);
}

}  // namespace
}  // namespace tpusim::spmd
