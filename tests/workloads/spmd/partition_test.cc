// texts/*.hlo have more of what partitioning makes of programs.
#include "workloads/spmd/partition.h"

#include <gtest/gtest.h>

#include "tests/workloads/spmd/spmd_test_util.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using sharding::Axes;
using sharding::Sharding;

const Axes kX = {{0, 1, 4}}, kXY = {{0, 1, 4}, {1, 1, 2}};

PartitionResult Partitioned(const sharding::ShardedModule& sharded) {
  auto result = Partition(sharded, kV5eLatency);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
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
