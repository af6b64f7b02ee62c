// IsLinear; texts/unreduced_*.hlo have what operations do with partial sums.
#include "workloads/sharding/propagation/unreduced.h"

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;

TEST(IsLinear, InWhichOperands) {
  hlo::TestModule m;
  Instruction* a = m.Param(F32({8, 8}));
  Instruction* divide = m.Add(Opcode::kDivide, F32({8, 8}), {a, a});
  EXPECT_TRUE(IsLinear(*divide, {1, 0}));
  EXPECT_FALSE(IsLinear(*divide, {0, 1}));
  Instruction* subtract = m.Add(Opcode::kSubtract, F32({8, 8}), {a, a});
  EXPECT_TRUE(IsLinear(*subtract, {1, 1}));
  EXPECT_FALSE(IsLinear(*subtract, {1, 0}));
  EXPECT_FALSE(IsLinear(*subtract, {0, 0}));
  // A sum whose start is not zero would count it once per part.
  for (const int64_t start : {0, 1}) {
    Instruction* first = hlo::AddConstant(m.entry(), hlo::PrimitiveType::kF32, start);
    Instruction* reduce = m.Add(Opcode::kReduce, F32({8}), {a, first});
    hlo::SetDimensions(reduce, {1});
    reduce->set_called({m.Reducer(Opcode::kAdd)});
    EXPECT_EQ(IsLinear(*reduce, {1, 0}), start == 0);
    reduce->set_called({m.Reducer(Opcode::kMaximum)});
    EXPECT_FALSE(IsLinear(*reduce, {1, 0}));
  }
}

}  // namespace
}  // namespace tpusim::sharding
