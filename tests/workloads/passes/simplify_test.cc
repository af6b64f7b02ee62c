// Rules of the simplifier, one at a time: what the result is made of afterwards.
#include "workloads/passes/simplify/simplify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::passes {
namespace {

using testing::ElementsAre;

class SimplifyTest : public testing::Test {
 protected:
  Instruction* Scalar(double value, PrimitiveType type = PrimitiveType::kF32) {
    return hlo::AddConstant(&m_.entry(), type, value);
  }
  Instruction* Broadcast(std::vector<int64_t> dims, Instruction* value,
                         std::vector<int64_t> mapped = {}) {
    Instruction* broadcast = m_.Add(Opcode::kBroadcast, std::move(dims), {value});
    hlo::SetDimensions(broadcast, mapped);
    return broadcast;
  }
  Instruction* Transpose(Instruction* value, std::vector<int64_t> permutation) {
    std::vector<int64_t> dims;
    for (int64_t d : permutation) dims.push_back(value->shape().dims[d]);
    Instruction* transpose = m_.Add(Opcode::kTranspose, dims, {value});
    hlo::SetDimensions(transpose, permutation);
    return transpose;
  }
  Instruction* Convert(Instruction* value, PrimitiveType type) {
    return m_.entry().Add(Opcode::kConvert, MakeShape(type, value->shape().dims), {value});
  }
  Instruction* Slice(Instruction* value, std::vector<hlo::SliceDim> parts) {
    std::vector<int64_t> dims;
    for (const auto& p : parts) dims.push_back((p.limit - p.start + p.stride - 1) / p.stride);
    Instruction* slice = m_.Add(Opcode::kSlice, dims, {value});
    hlo::SetSlice(slice, parts);
    return slice;
  }
  Instruction* Reduce(Opcode op, std::vector<int64_t> dims, Instruction* value,
                      std::vector<int64_t> over, double init) {
    hlo::Computation* reducer = m_.module().AddComputation("reducer");
    const hlo::Shape scalar = MakeShape(value->shape().element_type, {});
    Instruction* a = reducer->AddParameter(0, scalar, "a");
    Instruction* b = reducer->AddParameter(1, scalar, "b");
    reducer->set_root(reducer->Add(op, scalar, {a, b}));
    Instruction* reduce = m_.Add(Opcode::kReduce, std::move(dims),
                                 {value, Scalar(init, value->shape().element_type)});
    reduce->set_called({reducer});
    hlo::SetDimensions(reduce, over);
    return reduce;
  }
  // What is returned in place of `value`.
  const Instruction* Simplified(Instruction* value) {
    m_.Return({value});
    EXPECT_TRUE(Simplify(m_.module(), m_.target()).ok());
    EXPECT_TRUE(hlo::Verify(m_.module()).ok()) << hlo::Verify(m_.module()).message();
    return m_.entry().root()->operand(0);
  }

  SmallModule m_;
  Instruction* x_ = m_.Parameter({8, 16});
};

TEST_F(SimplifyTest, NeutralElements) {
  Instruction* one = Broadcast({8, 16}, Scalar(1));
  Instruction* zero = Broadcast({8, 16}, Scalar(0));
  Instruction* value = m_.Add(Opcode::kMultiply, {8, 16}, {one, x_});
  value = m_.Add(Opcode::kDivide, {8, 16}, {value, one});
  value = m_.Add(Opcode::kAdd, {8, 16}, {value, zero});
  value = m_.Add(Opcode::kSubtract, {8, 16}, {value, zero});
  EXPECT_EQ(Simplified(value), x_);
}

TEST_F(SimplifyTest, TheLeastValueIsNoMaximum) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto least = [&] { return Broadcast({8, 16}, Scalar(-kInfinity)); };
  EXPECT_EQ(Simplified(m_.Add(Opcode::kMaximum, {8, 16}, {x_, least()})), x_);
  EXPECT_EQ(Simplified(m_.Add(Opcode::kMinimum, {8, 16}, {x_, least()}))->opcode(),
            Opcode::kMinimum);
}

TEST_F(SimplifyTest, FloatsTimesZeroAreNotZero) {
  Instruction* zero = Broadcast({8, 16}, Scalar(0));
  EXPECT_EQ(Simplified(m_.Add(Opcode::kMultiply, {8, 16}, {x_, zero}))->opcode(),
            Opcode::kMultiply);
}

TEST_F(SimplifyTest, MinusNegativeZeroStays) {
  // -0 - -0 is +0.
  Instruction* zero = Broadcast({8, 16}, Scalar(-0.0));
  EXPECT_EQ(Simplified(m_.Add(Opcode::kSubtract, {8, 16}, {x_, zero}))->opcode(),
            Opcode::kSubtract);
}

TEST_F(SimplifyTest, WholeNumbersTimesZeroAre) {
  Instruction* n = m_.Parameter({8, 16}, PrimitiveType::kS32);
  Instruction* zero = Broadcast({8, 16}, Scalar(0, PrimitiveType::kS32));
  EXPECT_EQ(Simplified(m_.Add(Opcode::kMultiply, {8, 16}, {n, zero})), zero);
}

TEST_F(SimplifyTest, ConversionsThatKeepTheValue) {
  Instruction* b = m_.Parameter({8}, PrimitiveType::kBf16);
  EXPECT_EQ(Simplified(Convert(Convert(b, PrimitiveType::kF32), PrimitiveType::kBf16)), b);
}

TEST_F(SimplifyTest, ConversionsThatRoundStay) {
  Instruction* f = m_.Parameter({8}, PrimitiveType::kF32);
  const Instruction* result =
      Simplified(Convert(Convert(f, PrimitiveType::kBf16), PrimitiveType::kF32));
  ASSERT_EQ(result->opcode(), Opcode::kConvert);
  EXPECT_EQ(result->operand(0)->opcode(), Opcode::kConvert);
}

TEST_F(SimplifyTest, Selects) {
  Instruction* p = m_.Parameter({8, 16}, PrimitiveType::kPred);
  Instruction* yes = Broadcast({8, 16}, hlo::AddIntConstant(&m_.entry(), PrimitiveType::kPred, 1));
  const hlo::Shape shape = x_->shape();
  Instruction* y = m_.Parameter({8, 16});
  Instruction* first = m_.entry().Add(Opcode::kSelect, shape, {yes, x_, y});
  EXPECT_EQ(Simplified(m_.entry().Add(Opcode::kSelect, shape, {p, first, x_})), x_);
}

TEST_F(SimplifyTest, PredicatesAreNotCompared) {
  Instruction* p = m_.Parameter({8, 16}, PrimitiveType::kPred);
  Instruction* no = Broadcast({8, 16}, hlo::AddIntConstant(&m_.entry(), PrimitiveType::kPred, 0));
  Instruction* compare = m_.Add(Opcode::kCompare, {8, 16}, {no, p});
  compare->mutable_attrs().set_comparison_direction("NE");
  EXPECT_EQ(Simplified(compare), p);
}

TEST_F(SimplifyTest, ScalarsAreFolded) {
  // 3 * 4 - 5 = 7; an s8 wraps: 100 + 100 = -56.
  Instruction* value = m_.Add(Opcode::kMultiply, {}, {Scalar(3), Scalar(4)});
  value = m_.Add(Opcode::kSubtract, {}, {value, Scalar(5)});
  EXPECT_EQ(hlo::ScalarConstant(*Simplified(value)), 7.0);
  Instruction* hundred = Scalar(100, PrimitiveType::kS8);
  EXPECT_EQ(hlo::ScalarIntConstant(*Simplified(m_.Add(Opcode::kAdd, {}, {hundred, hundred}))), -56);
}

TEST_F(SimplifyTest, TransposesOfTransposes) {
  EXPECT_EQ(Simplified(Transpose(Transpose(x_, {1, 0}), {1, 0})), x_);
}

TEST_F(SimplifyTest, TransposeThatMovesOnesIsAReshape) {
  Instruction* p = m_.Parameter({8, 1, 16});
  const Instruction* result = Simplified(Transpose(p, {1, 0, 2}));
  EXPECT_EQ(result->opcode(), Opcode::kReshape);
  EXPECT_EQ(result->operand(0), p);
}

// [16] -> [1,16] -> [8,16]: the one in the middle is as good as none.
TEST_F(SimplifyTest, ReshapesToOnesBeforeBroadcastsGo) {
  Instruction* v = m_.Parameter({16});
  Instruction* row = m_.Add(Opcode::kReshape, {1, 16}, {v});
  Instruction* flat = m_.Add(Opcode::kReshape, {16}, {row});
  const Instruction* result =
      Simplified(m_.Add(Opcode::kAdd, {8, 16}, {x_, Broadcast({8, 16}, flat, {1})}));
  EXPECT_EQ(result->operand(1)->operand(0), v);
}

TEST_F(SimplifyTest, ReshapeOfBroadcast) {
  Instruction* v = m_.Parameter({16});
  Instruction* wide = Broadcast({8, 1, 16}, v, {2});
  const Instruction* result = Simplified(m_.Add(Opcode::kReshape, {8, 16}, {wide}));
  ASSERT_EQ(result->opcode(), Opcode::kBroadcast);
  EXPECT_THAT(hlo::Dimensions(*result), ElementsAre(1));
  EXPECT_EQ(result->operand(0), v);
}

TEST_F(SimplifyTest, ElementwiseBeforeBroadcast) {
  Instruction* v = m_.Parameter({16});
  Instruction* sum =
      m_.Add(Opcode::kAdd, {8, 16}, {Broadcast({8, 16}, v, {1}), Broadcast({8, 16}, Scalar(2))});
  const Instruction* result = Simplified(sum);
  ASSERT_EQ(result->opcode(), Opcode::kBroadcast);
  EXPECT_EQ(result->operand(0)->opcode(), Opcode::kAdd);
  EXPECT_THAT(result->operand(0)->shape().dims, ElementsAre(16));
}

TEST_F(SimplifyTest, SlicesOfSlices) {
  // Elements 2, 5, 8, 11, 14 of the rows; of these the second and the fourth: 5 and 11.
  Instruction* first = Slice(x_, {{0, 8, 1}, {2, 16, 3}});
  const Instruction* result = Simplified(Slice(first, {{0, 8, 1}, {1, 5, 2}}));
  EXPECT_EQ(result->operand(0), x_);
  EXPECT_THAT(hlo::GetSlice(*result), ElementsAre(hlo::SliceDim{0, 8, 1}, hlo::SliceDim{5, 12, 6}));
}

TEST_F(SimplifyTest, SliceOfConcatenate) {
  Instruction* y = m_.Parameter({4, 16});
  Instruction* both = m_.Add(Opcode::kConcatenate, {12, 16}, {x_, y});
  hlo::SetDimensions(both, {0});
  const Instruction* result = Simplified(Slice(both, {{9, 11, 1}, {0, 16, 1}}));
  EXPECT_EQ(result->operand(0), y);
  EXPECT_THAT(hlo::GetSlice(*result)[0], (hlo::SliceDim{1, 3, 1}));
}

TEST_F(SimplifyTest, SliceOfWhatOnlyItReadsIsComputedFromSlices) {
  Instruction* sum = m_.Add(Opcode::kAdd, {8, 16}, {x_, m_.Add(Opcode::kTanh, {8, 16}, {x_})});
  const Instruction* result = Simplified(Slice(sum, {{2, 4, 1}, {0, 16, 1}}));
  ASSERT_EQ(result->opcode(), Opcode::kAdd);
  EXPECT_THAT(result->shape().dims, ElementsAre(2, 16));
  EXPECT_EQ(result->operand(0)->opcode(), Opcode::kSlice);
  ASSERT_EQ(result->operand(1)->opcode(), Opcode::kTanh);
  EXPECT_EQ(result->operand(1)->operand(0), result->operand(0));
}

TEST_F(SimplifyTest, SlicesOfAValueThatOthersReadStay) {
  Instruction* t = m_.Add(Opcode::kTanh, {8, 16}, {x_});
  Instruction* sum = m_.Add(Opcode::kAdd, {4, 16},
                            {Slice(t, {{0, 4, 1}, {0, 16, 1}}), Slice(t, {{4, 8, 1}, {0, 16, 1}})});
  const Instruction* result = Simplified(sum);
  EXPECT_EQ(result->operand(0)->operand(0), t);
  EXPECT_EQ(result->operand(1)->operand(0), t);
}

TEST_F(SimplifyTest, DynamicSliceWithConstantStart) {
  Instruction* nine = hlo::AddIntConstant(&m_.entry(), PrimitiveType::kS32, 9);
  Instruction* zero = hlo::AddIntConstant(&m_.entry(), PrimitiveType::kS32, 0);
  Instruction* part = m_.Add(Opcode::kDynamicSlice, {2, 16}, {x_, nine, zero});
  hlo::SetDynamicSliceSizes(part, {2, 16});
  const Instruction* result = Simplified(part);
  ASSERT_EQ(result->opcode(), Opcode::kSlice);
  // Clamped: the last two of eight rows.
  EXPECT_THAT(hlo::GetSlice(*result)[0], (hlo::SliceDim{6, 8, 1}));
}

TEST_F(SimplifyTest, ReduceOfReduce) {
  Instruction* p = m_.Parameter({2, 3, 4, 5});
  Instruction* inner = Reduce(Opcode::kAdd, {2, 4, 5}, p, {1}, 0);
  const Instruction* result = Simplified(Reduce(Opcode::kAdd, {4}, inner, {0, 2}, 0));
  EXPECT_EQ(result->operand(0), p);
  EXPECT_THAT(hlo::Dimensions(*result), ElementsAre(0, 1, 3));
}

TEST_F(SimplifyTest, ReducesOfOtherKindsStay) {
  Instruction* p = m_.Parameter({2, 3, 4});
  Instruction* inner =
      Reduce(Opcode::kMaximum, {3, 4}, p, {0}, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(Simplified(Reduce(Opcode::kAdd, {4}, inner, {0}, 0))->operand(0)->opcode(),
            Opcode::kReduce);
}

TEST_F(SimplifyTest, ReduceThatStartsElsewhereStays) {
  Instruction* p = m_.Parameter({2, 3, 4});
  Instruction* inner = Reduce(Opcode::kAdd, {3, 4}, p, {0}, 1);
  EXPECT_EQ(Simplified(Reduce(Opcode::kAdd, {4}, inner, {0}, 0))->operand(0)->opcode(),
            Opcode::kReduce);
}

TEST_F(SimplifyTest, ReduceOverOnes) {
  Instruction* p = m_.Parameter({8, 1, 16});
  const Instruction* result = Simplified(Reduce(Opcode::kAdd, {8, 16}, p, {1}, 0));
  EXPECT_EQ(result->opcode(), Opcode::kReshape);
}

TEST_F(SimplifyTest, ReduceOfTranspose) {
  Instruction* p = m_.Parameter({2, 3, 4});
  const Instruction* result =
      Simplified(Reduce(Opcode::kAdd, {3}, Transpose(p, {2, 1, 0}), {0, 2}, 0));
  EXPECT_EQ(result->operand(0), p);
  EXPECT_THAT(hlo::Dimensions(*result), ElementsAre(0, 2));
}

TEST_F(SimplifyTest, TransposesAroundProducts) {
  Instruction* w = m_.Parameter({32, 16});
  Instruction* dot = m_.Dot({8, 32}, x_, Transpose(w, {1, 0}));
  const Instruction* result = Simplified(Transpose(dot, {1, 0}));
  ASSERT_EQ(result->opcode(), Opcode::kDot);
  EXPECT_EQ(result->operand(0), w);
  EXPECT_EQ(result->operand(1), x_);
  EXPECT_EQ(hlo::GetDotDims(*result), (hlo::DotDims{{1}, {1}, {}, {}}));
}

TEST_F(SimplifyTest, EqualReducesAreOne) {
  Instruction* a = Reduce(Opcode::kAdd, {8}, x_, {1}, 0);
  Instruction* b = Reduce(Opcode::kAdd, {8}, x_, {1}, 0);
  const Instruction* result = Simplified(m_.Add(Opcode::kMultiply, {8}, {a, b}));
  EXPECT_EQ(result->operand(0), result->operand(1));
}

TEST_F(SimplifyTest, WhatABarrierHoldsBackIsComputedAgain) {
  Instruction* first = m_.Add(Opcode::kTanh, {8, 16}, {x_});
  Instruction* held = m_.Add(Opcode::kOptBarrier, {8, 16}, {x_});
  Instruction* again = m_.Add(Opcode::kTanh, {8, 16}, {held});
  const Instruction* result = Simplified(m_.Add(Opcode::kAdd, {8, 16}, {first, again}));
  EXPECT_NE(result->operand(0), result->operand(1));
}

}  // namespace
}  // namespace tpusim::passes
