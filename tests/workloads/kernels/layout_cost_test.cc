// Padding and work across lanes follow the layout; v5e: registers of 8 x 128 words.

#include <gtest/gtest.h>

#include "configs/config.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/kernel_view.h"

namespace tpusim::kernels {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;
using hlo::WithOrder;

class LayoutCost : public ::testing::Test {
 protected:
  LayoutCost() : config_(configs::LoadConfig("v5e-1x1", {}).value()), target_(config_) {}

  int64_t Padded(PrimitiveType type, std::vector<int64_t> dims, std::vector<int64_t> order = {}) {
    return target_.PaddedSize(WithOrder(MakeShape(type, std::move(dims)), std::move(order)))
        .value();
  }
  VectorWork Of(Opcode op, const Shape& to, std::vector<Instruction*> operands,
                const std::vector<int64_t>& dims = {}) {
    Instruction* i = m_.Add(op, to, std::move(operands));
    if (!dims.empty()) hlo::SetDimensions(i, dims);
    if (op == Opcode::kReduce) i->set_called({m_.Reducer(Opcode::kAdd)});
    return VectorWorkOf(*i, target_).value();
  }

  hlo::TestModule m_;
  configs::Config config_;
  target::Target target_;
};

TEST_F(LayoutCost, PaddingFollowsTheTwoFastestDimensions) {
  // 4096 x roundup(9, 8) x roundup(3, 128) words, then 9 x roundup(3, 4) x 4096 in T(4,128).
  EXPECT_EQ(Padded(PrimitiveType::kF32, {4096, 9, 3}), int64_t{4096} * 16 * 128 * 4);
  EXPECT_EQ(Padded(PrimitiveType::kF32, {4096, 9, 3}, {0, 2, 1}), int64_t{9} * 4 * 4096 * 4);
  EXPECT_EQ(target_.TileOf(WithOrder(F32({4096, 9, 3}), {0, 2, 1})),
            (std::vector<int64_t>{4, 128}));
  // One row has a tile of its own, but for types whose rows share words.
  EXPECT_EQ(Padded(PrimitiveType::kF32, {1, 1000}), 1024 * 4);
  EXPECT_EQ(Padded(PrimitiveType::kBf16, {1, 1000}), 2 * 1024 * 2);
}

TEST_F(LayoutCost, RegistersOfPackedRowsOnlyWhereTheyComeOutEven) {
  // T(32,128)(4,1) for 64 rows, T(8,128)(4,1) for 33, T(4,128)(4,1) for 3.
  EXPECT_EQ(Padded(PrimitiveType::kS8, {64, 128}), 64 * 128);
  EXPECT_EQ(Padded(PrimitiveType::kS8, {33, 128}), 40 * 128);
  EXPECT_EQ(Padded(PrimitiveType::kS8, {3, 128}), 4 * 128);
  // T(64,128)(8,1) and T(8,128)(8,1) for nibbles.
  EXPECT_EQ(Padded(PrimitiveType::kS4, {64, 128}), 64 * 128 / 2);
  EXPECT_EQ(Padded(PrimitiveType::kS4, {9, 128}), 16 * 128 / 2);
}

TEST_F(LayoutCost, ReducingAMajorDimensionCrossesNothing) {
  Instruction* zero = hlo::AddConstant(m_.entry(), PrimitiveType::kF32, 0);
  // [2048,2048,3] with the 3 slowest: 3 x 2048 x 2048 / 1024 registers are added up.
  Instruction* major = m_.Param(WithOrder(F32({2048, 2048, 3}), {1, 0, 2}));
  const VectorWork added = Of(Opcode::kReduce, F32({2048, 2048}), {major, zero}, {2});
  EXPECT_EQ(added.valu, 3 * 4096);
  EXPECT_EQ(added.xlu, 0);
  // With the 3 fastest, 2048 x 256 registers come in and as many leave across lanes.
  const VectorWork across =
      Of(Opcode::kReduce, F32({2048, 2048}), {m_.Param(F32({2048, 2048, 3})), zero}, {2});
  EXPECT_GT(across.xlu, 2048 * 256);
}

TEST_F(LayoutCost, ABroadcastOfLanesThatStayLanesIsFree) {
  Instruction* x = m_.Param(WithOrder(F32({2048, 3}), {0, 1}));
  const Shape wide = WithOrder(F32({256, 2048, 3}), {1, 0, 2});
  EXPECT_EQ(Of(Opcode::kBroadcast, wide, {x}, {1, 2}).xlu, 0);
  // 2048 lanes that become rows: 2048 / 8 x 3 registers of rows are filled, each for two columns.
  const Shape other = WithOrder(F32({2048, 256, 3}), {1, 0, 2});
  EXPECT_EQ(Of(Opcode::kBroadcast, other, {x}, {0, 2}).xlu, 768);
  EXPECT_EQ(Of(Opcode::kBroadcast, other, {x}, {0, 2}).valu, 0);
}

// A value that the compiler has widened from bf16 is rounded to it again, and needs no refined
// quotient.
TEST_F(LayoutCost, WidenedQuotientsAreNotRefined) {
  const Shape all = F32({1024, 1024});
  Instruction* quotient = m_.Add(Opcode::kDivide, all, {m_.Param(all), m_.Param(all)});
  const double refined = VectorWorkOf(*quotient, target_)->valu;
  quotient->mutable_attrs().set_backend_config(
      R"({"float_type_correction_info":{"original_type":"BF16"}})");
  EXPECT_EQ(VectorWorkOf(*quotient, target_)->valu, refined / 7);  // 2 operations instead of 14
}

// 1024 x 1024 / 1024 products, and reciprocals of 1024 / 8 registers of rows.
TEST_F(LayoutCost, RowsAreDividedByANumberEach) {
  const Shape all = F32({1024, 1024});
  Instruction* sums = m_.Add(Opcode::kBroadcast, all, {m_.Param(F32({1024}))});
  hlo::SetDimensions(sums, {0});
  const VectorWork rows = Of(Opcode::kDivide, all, {m_.Param(all), sums});
  const VectorWork each = Of(Opcode::kDivide, all, {m_.Param(all), m_.Param(all)});
  EXPECT_EQ(rows.eup, each.eup / 8);
  EXPECT_EQ(rows.valu, 1024 + each.valu / 8);
}

TEST_F(LayoutCost, TransposesAndCopiesCrossLanesIfTheFastestDimensionChanges) {
  Instruction* x = m_.Param(F32({512, 256, 128}));
  EXPECT_EQ(Of(Opcode::kTranspose, F32({256, 512, 128}), {x}, {1, 0, 2}).xlu, 0);
  // 512 x 256 x 128 / 1024 registers.
  EXPECT_EQ(Of(Opcode::kTranspose, F32({128, 256, 512}), {x}, {2, 1, 0}).xlu, 16384);
  // The same transpose into a layout that undoes it.
  EXPECT_EQ(Of(Opcode::kTranspose, WithOrder(F32({128, 256, 512}), {0, 1, 2}), {x}, {2, 1, 0}).xlu,
            0);
  EXPECT_EQ(Of(Opcode::kCopy, WithOrder(F32({512, 256, 128}), {2, 0, 1}), {x}).xlu, 0);
  EXPECT_EQ(Of(Opcode::kCopy, WithOrder(F32({512, 256, 128}), {1, 2, 0}), {x}).xlu, 16384);
  // What lies padded is read padded: 4096 x 2 registers for 36 x 4096 / 1024.
  Instruction* small = m_.Param(F32({4096, 9, 3}));
  EXPECT_EQ(Of(Opcode::kCopy, WithOrder(F32({4096, 9, 3}), {0, 2, 1}), {small}).xlu, 8192);
}

}  // namespace
}  // namespace tpusim::kernels
