// Sums of sums, with and without extents of one between them.
#include "workloads/hlo/transforms/merge_reduces.h"

#include <gtest/gtest.h>

#include "tests/workloads/hlo/hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using testing::ElementsAre;

struct Sums {
  TestModule m;
  Computation* add = m.Reducer(Opcode::kAdd);
  Instruction* p = m.Param(F32({6, 8, 4}));
  Instruction* zero = AddConstant(m.entry(), PrimitiveType::kF32, 0);

  Instruction* Sum(Instruction* value, Shape shape, std::vector<int64_t> dims) {
    Instruction* sum = m.Add(Opcode::kReduce, std::move(shape), {value, zero});
    sum->set_called({add});
    SetDimensions(sum, dims);
    return sum;
  }
  bool Merge(const Instruction* fixed = nullptr) {
    return MergeReduces(m.entry(), [&](const Instruction* i) { return i == fixed; });
  }
};

// Over the rows of every batch, as [6,1,4]; then over the batch, and over the one.
TEST(MergeReduces, ThroughExtentsOfOne) {
  Sums s;
  Instruction* rows = s.Sum(s.p, F32({6, 4}), {1});
  Instruction* wide = s.m.Add(Opcode::kReshape, F32({6, 1, 4}), {rows});
  Instruction* batch = s.Sum(wide, F32({1, 4}), {0});
  s.Sum(batch, F32({4}), {0});
  EXPECT_TRUE(s.Merge());
  ASSERT_TRUE(Verify(s.m.module()).ok());
  s.m.entry()->RemoveDead();
  const Instruction* sum = s.m.entry()->root();
  ASSERT_EQ(sum->opcode(), Opcode::kReduce);
  EXPECT_EQ(sum->operand(0), s.p);
  EXPECT_THAT(Dimensions(*sum), ElementsAre(0, 1));
  EXPECT_EQ(s.m.entry()->size(), 3u);  // parameter, zero, sum
}

TEST(MergeReduces, OfNothingThatIsFixed) {
  Sums s;
  Instruction* rows = s.Sum(s.p, F32({6, 4}), {1});
  s.Sum(rows, F32({4}), {0});
  EXPECT_FALSE(s.Merge(rows));
  EXPECT_TRUE(s.Merge());
}

TEST(MergeReduces, NotIfOthersWantTheFirst) {
  Sums s;
  Instruction* rows = s.Sum(s.p, F32({6, 4}), {1});
  Instruction* sum = s.Sum(rows, F32({4}), {0});
  s.m.Add(Opcode::kTuple, MakeTupleShape({rows->shape(), sum->shape()}), {rows, sum});
  EXPECT_FALSE(s.Merge());
}

}  // namespace
}  // namespace tpusim::hlo
