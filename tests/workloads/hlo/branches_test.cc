#include "workloads/hlo/analysis/branch_choice.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/branches.h"
#include "workloads/hlo/rules/cost.h"

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

TEST(BranchesTest, StatedThenEvaluatedThenLongest) {
  TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  Instruction* one = AddIntConstant(m.entry(), PrimitiveType::kU32, 1);
  Instruction* below = m.Add(Opcode::kCompare, Pred(), {PartitionIdIn(m), one});
  below->mutable_attrs().set_comparison_direction("LT");
  Instruction* by_id = ConditionalOf(m, below, x);
  const KnownValues values(m.module());
  // True takes the first branch.
  EXPECT_EQ(BranchOf(*by_id, 0, values).taken, 0);
  EXPECT_EQ(BranchOf(*by_id, 3, values).taken, 1);
  EXPECT_EQ(RunBy(*by_id), by_id->called());
  EXPECT_TRUE(StateBranch(by_id, "0"));
  EXPECT_FALSE(StateBranch(by_id, "0"));
  EXPECT_EQ(BranchOf(*by_id, 3, values).taken, 0);
  EXPECT_TRUE(BranchOf(*by_id, 3, values).stated);
  EXPECT_EQ(RunBy(*by_id), std::vector{by_id->called()[0]});
  Instruction* by_data = ConditionalOf(m, m.Param(S32({})), x);
  EXPECT_EQ(BranchOf(*by_data, 0, values).taken, std::nullopt);
  EXPECT_FALSE(BranchOf(*by_data, 0, values).stated);
  StateBranch(by_data, "longest");
  EXPECT_EQ(BranchOf(*by_data, 0, values).taken, std::nullopt);
  EXPECT_TRUE(BranchOf(*by_data, 0, values).stated);
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
