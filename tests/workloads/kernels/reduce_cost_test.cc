// Reductions over lanes and running sums on v5e, with the arithmetic by hand: registers of
// 8 x 128 words.

#include <gtest/gtest.h>

#include "configs/config.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/vector_work/vector_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

class ReduceCost : public ::testing::Test {
 protected:
  ReduceCost() : config_(configs::LoadConfig("v5e-1x1", {}).value()), target_(config_) {}

  VectorWork Sum(const hlo::Shape& of, const hlo::Shape& to, int64_t dim) {
    Instruction* zero = hlo::AddConstant(m_.entry(), PrimitiveType::kF32, 0);
    Instruction* reduce = m_.Add(Opcode::kReduce, to, {m_.Param(of), zero});
    hlo::SetDimensions(reduce, {dim});
    reduce->set_called({m_.Reducer(Opcode::kAdd)});
    return VectorWorkOf(*reduce, target_).value();
  }
  VectorWork RunningSum(const hlo::Shape& of, size_t dim) {
    Instruction* zero = hlo::AddConstant(m_.entry(), PrimitiveType::kF32, 0);
    Instruction* sum = m_.Add(Opcode::kReduceWindow, of, {m_.Param(of), zero});
    std::vector<hlo::WindowDim> window(of.dims.size());
    window[dim].size = of.dims[dim];
    window[dim].padding_low = of.dims[dim] - 1;
    hlo::SetWindow(sum, window);
    sum->set_called({m_.Reducer(Opcode::kAdd)});
    return VectorWorkOf(*sum, target_).value();
  }

  // Returns the work of a sum that is spread over its row again, as the compiler writes it.
  VectorWork SpreadSum(const hlo::Shape& of, size_t dim) {
    Instruction* zero = hlo::AddConstant(m_.entry(), PrimitiveType::kF32, 0);
    Instruction* sum = m_.Add(Opcode::kReduceWindow, of, {m_.Param(of), zero});
    std::vector<hlo::WindowDim> window(of.dims.size());
    window[dim].size = 2 * of.dims[dim] - 1;
    window[dim].padding_low = window[dim].padding_high = of.dims[dim] - 1;
    hlo::SetWindow(sum, window);
    sum->set_called({m_.Reducer(Opcode::kAdd)});
    return VectorWorkOf(*sum, target_).value();
  }

  hlo::TestModule m_;
  configs::Config config_;
  target::Target target_;
};

// One register of eight rows: in, and out in eight pops. Sixteen registers of 128 rows go
// in together and need no more pops. 17 are two groups.
TEST_F(ReduceCost, SquaresOfLanesAreTransposedTogether) {
  EXPECT_EQ(Sum(F32({8, 128}), F32({8}), 1).xlu, 1 + 8);
  EXPECT_EQ(Sum(F32({128, 128}), F32({128}), 1).xlu, 16 + 8);
  EXPECT_EQ(Sum(F32({136, 128}), F32({136}), 1).xlu, 17 + 2 * 8);
  // Every register once, and what leaves the unit: the eight pops, or the sixteen registers
  // that the square became.
  EXPECT_EQ(Sum(F32({8, 128}), F32({8}), 1).valu, 1 + 8);
  EXPECT_EQ(Sum(F32({128, 128}), F32({128}), 1).valu, 16 + 16);
  // Sixteen columns of registers are added up first: 128 rows leave 16 registers.
  EXPECT_EQ(Sum(F32({128, 2048}), F32({128}), 1).xlu, 16 + 8);
}

// A window over all of the row wherever it stands is that sum, and a splat for each of the 16
// registers that are left.
TEST_F(ReduceCost, WindowsThatSeeAllOfARowAreSummedOnce) {
  EXPECT_EQ(SpreadSum(F32({128, 2048}), 1).xlu, Sum(F32({128, 2048}), F32({128}), 1).xlu + 16);
}

// [1024,1024] are 1024 registers. Along lanes they are turned twice; blocks of 128 are
// summed, and what comes before each is added; the result is copied out.
TEST_F(ReduceCost, ARunningSumAlongLanesIsTurned) {
  for (size_t dim : {0, 1}) {
    const VectorWork work = RunningSum(F32({1024, 1024}), dim);
    EXPECT_EQ(work.xlu, 2 * 1024);
    EXPECT_EQ(work.valu, 2 * 1024 + 1024);
    EXPECT_EQ(work.load, 2 * 1024);
  }
  // One block needs one sum.
  EXPECT_EQ(RunningSum(F32({1024, 128}), 1).valu, 128 + 128);
}

// Along a dimension that counts registers nothing is turned: [64,8,128] are 64.
TEST_F(ReduceCost, ARunningSumOverRegistersIsOneAdditionEach) {
  const VectorWork work = RunningSum(F32({64, 8, 128}), 0);
  EXPECT_EQ(work.xlu, 0);
  EXPECT_EQ(work.valu, 64 + 64);
}

// Four elements: two shifts are as good as two turns.
TEST_F(ReduceCost, AShortRunningSumDoublesItsReach) {
  const VectorWork work = RunningSum(F32({1024, 4}), 1);
  EXPECT_EQ(work.xlu, 2 * 128);
  EXPECT_EQ(work.valu, 2 * 128 + 128);
}

// One row by a matrix: 1024 registers of it are multiplied and added up, along sublanes 8 registers
// are left of a row of 1024, combined in three steps. Narrow terms are rounded and widened between.
TEST_F(ReduceCost, ARowByAMatrixRoundsNarrowTerms) {
  const auto work = [&](PrimitiveType type) {
    Instruction* row = m_.Param(hlo::MakeShape(type, {1, 1024}));
    Instruction* matrix = m_.Param(hlo::MakeShape(type, {1024, 1024}));
    Instruction* dot = m_.Add(Opcode::kDot, hlo::MakeShape(type, {1, 1024}), {row, matrix});
    hlo::SetDotDims(dot, {{1}, {0}, {}, {}});
    return VectorWorkOf(*dot, target_).value();
  };
  EXPECT_EQ(work(PrimitiveType::kF32).valu, 2 * 1024 + 3 * 8);
  EXPECT_EQ(work(PrimitiveType::kBf16).valu, 4 * 1024 + 3 * 8);
  EXPECT_EQ(work(PrimitiveType::kBf16).xlu, 3 * 8);
}

}  // namespace
}  // namespace tpusim::kernels
