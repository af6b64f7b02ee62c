// Values that stay unreduced after propagation.
#include "workloads/sharding/unreduced.h"

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;

class UnreducedTest : public testing::Test {
 protected:
  // f32[8,8], split by x, a sum over y.
  Instruction* Parts() {
    Instruction* dot = m_.Dot(m_.Argument(F32({8, 4}), "[{\"x\"}, {\"y\"}]"),
                              m_.Argument(F32({4, 8}), "[{\"y\"}, {}]"), {8, 8});
    return m_.Constrain(dot, "[{\"x\"}, {}], unreduced={\"y\"}");
  }
  Instruction* Total(Instruction* value) { return m_.Constrain(value, "[{\"x\"}, {}]"); }

  ShardedTestModule m_;
};

TEST_F(UnreducedTest, LinearOpsPassParts) {
  Instruction* parts = Parts();
  Instruction* twice = m_.Add(Opcode::kAdd, F32({8, 8}), {parts, parts});
  Instruction* less = m_.Add(Opcode::kNegate, F32({8, 8}), {twice});
  Instruction* whole = m_.Argument(F32({8, 8}), "[{\"x\"}, {}]");
  Instruction* product = m_.Add(Opcode::kMultiply, F32({8, 8}), {whole, less});
  Total(product);
  m_.Shard();
  for (Instruction* value : {twice, less, product}) {
    EXPECT_EQ(m_.Of(value), "[{x}, {}] unreduced={y}");
  }
  EXPECT_EQ(m_.OfRoot(), "[{x}, {}]");
}

TEST_F(UnreducedTest, OthersGetTheSum) {
  Instruction* parts = Parts();
  Instruction* square = m_.Add(Opcode::kMultiply, F32({8, 8}), {parts, parts});
  Instruction* whole = m_.Argument(F32({8, 8}), "[{\"x\"}, {}]");
  Instruction* mixed = m_.Add(Opcode::kAdd, F32({8, 8}), {parts, whole});
  // Linear, but a sine needs it.
  Instruction* negative = m_.Add(Opcode::kNegate, F32({8, 8}), {parts});
  Instruction* sine = m_.Add(Opcode::kSine, F32({8, 8}), {negative});
  Instruction* sum = m_.Add(Opcode::kAdd, F32({8, 8}), {square, mixed});
  Total(m_.Add(Opcode::kAdd, F32({8, 8}), {sum, sine}));
  m_.Shard();
  for (Instruction* value : {square, mixed, negative, sine}) {
    EXPECT_EQ(m_.Of(value), "[{x}, {}]");
  }
}

TEST_F(UnreducedTest, PartsAreRoundedOnlyIfTheProgramSaysSo) {
  const hlo::Shape half = hlo::MakeShape(hlo::PrimitiveType::kBf16, {8, 8});
  Instruction* parts = Parts();
  Instruction* silent = m_.Add(Opcode::kConvert, half, {parts});
  Instruction* stated = m_.Add(Opcode::kConvert, half, {parts});
  Instruction* stays = m_.Constrain(stated, "[{\"x\"}, {}], unreduced={\"y\"}");
  m_.Add(Opcode::kAdd, half, {Total(silent), Total(stays)});
  m_.Shard();
  EXPECT_EQ(m_.Of(silent), "[{x}, {}]");
  EXPECT_EQ(m_.Of(stated), "[{x}, {}] unreduced={y}");
}

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
