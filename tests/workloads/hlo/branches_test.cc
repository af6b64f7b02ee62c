// The branch that runs, and scalars that depend on the partition alone.
#include "workloads/hlo/rules/branches.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/hlo/rules/scalar_value.h"

namespace tpusim::hlo {
namespace {

Instruction* PartitionIdIn(TestModule& m) {
  return m.Add(Opcode::kPartitionId, MakeScalarShape(PrimitiveType::kU32), {});
}

Instruction* ConditionalOf(TestModule& m, Instruction* selector, Instruction* x) {
  std::vector<Computation*> branches;
  for (Opcode op : {Opcode::kSine, Opcode::kNegate}) {
    Computation* c = m.module().AddComputation("branch");
    Instruction* p = TestModule::Param(c, x->shape());
    TestModule::Add(c, op, x->shape(), {p});
    branches.push_back(c);
  }
  Instruction* conditional = m.Add(Opcode::kConditional, x->shape(), {selector, x, x});
  conditional->set_called(branches);
  return conditional;
}

TEST(ScalarValueTest, FollowsThePartitionId) {
  TestModule m;
  Instruction* id = PartitionIdIn(m);
  Instruction* four = AddIntConstant(m.entry(), PrimitiveType::kU32, 4);
  const Shape u32 = MakeScalarShape(PrimitiveType::kU32);
  Instruction* row = m.Add(Opcode::kDivide, u32, {id, four});
  Instruction* column = m.Add(Opcode::kRemainder, u32, {id, four});
  Instruction* first = m.Add(Opcode::kCompare, Pred(), {row, column});
  first->mutable_attrs().set_comparison_direction("EQ");
  EXPECT_EQ(ScalarValue(*row, 6), 1);
  EXPECT_EQ(ScalarValue(*column, 6), 2);
  EXPECT_EQ(ScalarValue(*first, 5), 1);
  EXPECT_EQ(ScalarValue(*first, 6), 0);
  EXPECT_EQ(ScalarValue(*m.Param(S32({})), 0), std::nullopt);
}

// Numbers are those of their type: 2 - 5 without a sign is 2^32 - 3, of which a quarter is
// 2^30 - 1, and which is larger than 2.
TEST(ScalarValueTest, WrapsAround) {
  TestModule m;
  const Shape u32 = MakeShape(PrimitiveType::kU32, {});
  Instruction* two = AddIntConstant(m.entry(), PrimitiveType::kU32, 2);
  Instruction* device = m.Add(Opcode::kPartitionId, u32, {});
  Instruction* less = m.Add(Opcode::kSubtract, u32, {two, device});
  Instruction* quarter = m.Add(Opcode::kShiftRightLogical, u32, {less, two});
  Instruction* larger = m.Add(Opcode::kCompare, Pred(), {less, two});
  larger->mutable_attrs().set_comparison_direction("GT");
  EXPECT_EQ(ScalarValue(*less, 5), (int64_t{1} << 32) - 3);
  EXPECT_EQ(ScalarValue(*quarter, 5), (int64_t{1} << 30) - 1);
  EXPECT_EQ(ScalarValue(*larger, 5), 1);
  EXPECT_EQ(ScalarValue(*larger, 1), 0);
}

TEST(ScalarValueTest, LooksUpTables) {
  TestModule m;
  Instruction* table = m.Add(Opcode::kConstant, S32({4}), {});
  *table->mutable_attrs().mutable_literal() =
      MakeIntVectorLiteral(PrimitiveType::kS32, {7, 5, 3, 1});
  Instruction* entry = m.Add(Opcode::kDynamicSlice, S32({1}), {table, PartitionIdIn(m)});
  Instruction* scalar = m.Add(Opcode::kReshape, S32({}), {entry});
  EXPECT_EQ(ScalarValue(*scalar, 2), 3);
  // Starts are clamped to the table.
  EXPECT_EQ(ScalarValue(*scalar, 9), 1);
}

TEST(BranchesTest, StatedThenEvaluatedThenLongest) {
  TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  Instruction* one = AddIntConstant(m.entry(), PrimitiveType::kU32, 1);
  Instruction* below = m.Add(Opcode::kCompare, Pred(), {PartitionIdIn(m), one});
  below->mutable_attrs().set_comparison_direction("LT");
  Instruction* by_id = ConditionalOf(m, below, x);
  // True takes the first branch.
  EXPECT_EQ(BranchOf(*by_id, 0).taken, 0);
  EXPECT_EQ(BranchOf(*by_id, 3).taken, 1);
  EXPECT_EQ(RunBy(*by_id), by_id->called());
  EXPECT_TRUE(StateBranch(by_id, "0"));
  EXPECT_FALSE(StateBranch(by_id, "0"));
  EXPECT_EQ(BranchOf(*by_id, 3).taken, 0);
  EXPECT_TRUE(BranchOf(*by_id, 3).stated);
  EXPECT_EQ(RunBy(*by_id), std::vector{by_id->called()[0]});
  Instruction* by_data = ConditionalOf(m, m.Param(S32({})), x);
  EXPECT_EQ(BranchOf(*by_data, 0).taken, std::nullopt);
  EXPECT_FALSE(BranchOf(*by_data, 0).stated);
  StateBranch(by_data, "longest");
  EXPECT_EQ(BranchOf(*by_data, 0).taken, std::nullopt);
  EXPECT_TRUE(BranchOf(*by_data, 0).stated);
  EXPECT_EQ(RunBy(*by_data), by_data->called());
  EXPECT_TRUE(IsBranchOf(*by_data, "1"));
  for (const char* wrong : {"2", "-1", "", "1 ", "99999999999", "shortest"}) {
    EXPECT_FALSE(IsBranchOf(*by_data, wrong)) << wrong;
  }
}

// Not more work than what runs: sine of 2^20 elements, or a negation of them.
TEST(BranchesTest, TheCostIsThatOfTheBranchThatRuns) {
  TestModule m;
  Instruction* conditional = ConditionalOf(m, m.Param(S32({})), m.Param(F32({1024, 1024})));
  EXPECT_EQ(CostOf(*conditional)->transcendentals, Flops(1 << 20));
  StateBranch(conditional, "1");
  EXPECT_EQ(CostOf(*conditional)->transcendentals, Flops(0));
  EXPECT_EQ(CostOf(*conditional)->flops, Flops(1 << 20));
}

}  // namespace
}  // namespace tpusim::hlo
