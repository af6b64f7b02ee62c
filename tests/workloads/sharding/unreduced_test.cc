// PassesParts; texts/unreduced_*.hlo have what operations do with partial sums.
#include "workloads/sharding/propagation/unreduced.h"

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;

TEST(PassesParts, OfSums) {
  hlo::TestModule m;
  Instruction* a = m.Param(F32({8, 8}));
  Instruction* divide = m.Add(Opcode::kDivide, F32({8, 8}), {a, a});
  EXPECT_TRUE(PassesParts(*divide, {1, 0}, Reduction::kSum));
  EXPECT_FALSE(PassesParts(*divide, {0, 1}, Reduction::kSum));
  Instruction* subtract = m.Add(Opcode::kSubtract, F32({8, 8}), {a, a});
  EXPECT_TRUE(PassesParts(*subtract, {1, 1}, Reduction::kSum));
  EXPECT_FALSE(PassesParts(*subtract, {1, 0}, Reduction::kSum));
  EXPECT_FALSE(PassesParts(*subtract, {0, 0}, Reduction::kSum));
  // A sum whose start is not zero would count it once per part.
  for (const int64_t start : {0, 1}) {
    Instruction* first = hlo::AddConstant(m.entry(), hlo::PrimitiveType::kF32, start);
    Instruction* reduce = m.Add(Opcode::kReduce, F32({8}), {a, first});
    hlo::SetDimensions(reduce, {1});
    reduce->set_called({m.Reducer(Opcode::kAdd)});
    EXPECT_EQ(PassesParts(*reduce, {1, 0}, Reduction::kSum), start == 0);
    reduce->set_called({m.Reducer(Opcode::kMaximum)});
    EXPECT_FALSE(PassesParts(*reduce, {1, 0}, Reduction::kSum));
  }
}

// Parts of a maximum pass through what moves elements, and through another maximum, whatever it
// begins with.
TEST(PassesParts, OfMaxima) {
  hlo::TestModule m;
  Instruction* a = m.Param(F32({8, 8}));
  const auto passes = [](const Instruction* op, const std::vector<char>& partial) {
    return PassesParts(*op, partial, Reduction::kMax);
  };
  EXPECT_TRUE(passes(m.Add(Opcode::kReshape, F32({64}), {a}), {1}));
  EXPECT_TRUE(passes(m.Add(Opcode::kConcatenate, F32({16, 8}), {a, a}), {1, 1}));
  EXPECT_FALSE(passes(m.Add(Opcode::kNegate, F32({8, 8}), {a}), {1}));
  EXPECT_FALSE(passes(m.Add(Opcode::kAdd, F32({8, 8}), {a, a}), {1, 1}));
  EXPECT_FALSE(passes(m.Add(Opcode::kMultiply, F32({8, 8}), {a, a}), {1, 0}));
  Instruction* one = hlo::AddConstant(m.entry(), hlo::PrimitiveType::kF32, 1);
  Instruction* reduce = m.Add(Opcode::kReduce, F32({8}), {a, one});
  hlo::SetDimensions(reduce, {1});
  for (const Opcode by : {Opcode::kMaximum, Opcode::kMinimum, Opcode::kAdd}) {
    reduce->set_called({m.Reducer(by)});
    EXPECT_EQ(passes(reduce, {1, 0}), by == Opcode::kMaximum);
    EXPECT_EQ(PassesParts(*reduce, {1, 0}, Reduction::kMin), by == Opcode::kMinimum);
  }
}

}  // namespace
}  // namespace tpusim::sharding
