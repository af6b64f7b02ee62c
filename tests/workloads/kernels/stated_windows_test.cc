// Products whose grid the TPU compiler has stated.
#include "workloads/kernels/tiling/stated_windows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "configs/config.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "tests/workloads/kernels/fused_product.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/tiling/kernels.h"

namespace tpusim::kernels {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;

isa::Kernel Stated(const std::string& slice, const std::string& bounds) {
  hlo::TestModule m;
  Instruction* a = m.Param(F32({1024, 512}));
  Instruction* b = m.Param(F32({512, 1024}));
  Instruction* product = AddProduct(m.entry(), F32({1024, 1024}), a, b);
  product->mutable_attrs().set_backend_config(
      fmt::format(R"({{"window_config":{{"iteration_bounds":[{}]}}}})", bounds));
  const configs::Config config = configs::LoadConfig(slice, {}).value();
  return BuildKernel(*product, target::Target(config)).value();
}

int64_t Fetched(const isa::Kernel& kernel, size_t window) {
  return kernel.windows[window].bytes.value();
}

// Two halves of the columns: one after the other, or one on each core.
TEST(StatedWindowsTest, CoresOfAMegacoreHalveTheGrid) {
  const isa::Kernel alone = Stated("v5e-1x1", R"("2","1","1")");
  EXPECT_EQ(alone.Steps(), 2);
  EXPECT_EQ(alone.block.mxu.n, 512);
  const isa::Kernel both = Stated("v5p-2x2x1", R"("2","1","1")");
  EXPECT_EQ(both.Steps(), 1);
  EXPECT_EQ(both.block.mxu.n, 1024);
  // Rows go to either core, columns to one of them.
  EXPECT_EQ(Fetched(both, 0), 2 * Fetched(alone, 0));
  EXPECT_EQ(Fetched(both, 1), 2 * Fetched(alone, 1));
}

// The outermost that has steps; what is odd is not dealt.
TEST(StatedWindowsTest, OneDimensionIsDealt) {
  const isa::Kernel rows = Stated("v5p-2x2x1", R"("1","4","1")");
  EXPECT_EQ(rows.Steps(), 2);
  EXPECT_EQ(rows.block.mxu.m, 512);
  EXPECT_EQ(Stated("v5p-2x2x1", R"("2","4","1")").Steps(), 4);
  EXPECT_EQ(Stated("v5p-2x2x1", R"("1","3","1")").Steps(), 3);
}

// [128,512] in windows of [128,256] are two blocks of columns.
TEST(StatedWindowsTest, TheWindowOfTheResultTellsThatOperandsAreExchanged) {
  hlo::TestModule m;
  Instruction* product = m.Add(Opcode::kConvolution, F32({128, 512}),
                               {m.Param(F32({128, 64})), m.Param(F32({64, 512}))});
  auto& numbers = *product->mutable_attrs().mutable_convolution_dimension_numbers();
  numbers.set_output_batch_dimension(0);
  numbers.set_output_feature_dimension(1);
  const configs::Config config = configs::LoadConfig("v6e-1x1", {}).value();
  const target::Target target(config);
  StatedWindows windows{.iterations = {1, 2, 1}, .estimate = {}, .result = {16, 2}};
  const auto exchanged = [&](const StatedGrid& grid) {
    return GridOfExchanged(*product, windows, grid, target);
  };
  EXPECT_TRUE(exchanged({.columns = 1, .rows = 2}).has_value());
  EXPECT_FALSE(exchanged({.columns = 2, .rows = 1}).has_value());
  // Rows in two blocks, as the grid says.
  windows.result = {8, 4};
  EXPECT_FALSE(exchanged({.columns = 1, .rows = 2}).has_value());
  windows.result.clear();
  EXPECT_FALSE(exchanged({.columns = 1, .rows = 2}).has_value());
}

// Results come out of the arrays with their columns along the lanes: rows that lie there were
// columns, in whatever order the grid has them.
TEST(StatedWindowsTest, RowsAlongTheLanesAreColumnsOfTheArrays) {
  hlo::TestModule m;
  Instruction* product = m.Add(Opcode::kConvolution, F32({256, 1024}),
                               {m.Param(F32({256, 64})), m.Param(F32({64, 1024}))});
  product->set_shape(hlo::WithOrder(product->shape(), {0, 1}));
  auto& numbers = *product->mutable_attrs().mutable_convolution_dimension_numbers();
  numbers.set_output_batch_dimension(0);
  numbers.set_output_feature_dimension(1);
  const configs::Config config = configs::LoadConfig("v6e-1x1", {}).value();
  const target::Target target(config);
  // As it lies, features first: two blocks of 512 features, one of 256 rows.
  const StatedWindows windows{.iterations = {2, 1, 1}, .estimate = {}, .result = {64, 2}};
  const auto grid = GridOfExchanged(*product, windows, {.columns = 2, .rows = 1}, target);
  ASSERT_TRUE(grid.has_value());
  EXPECT_EQ(grid->columns, 1);
  EXPECT_EQ(grid->rows, 2);
  EXPECT_TRUE(grid->rows_outside);
}

// [12,2048,7168] by [2,2048,7168], as the compiler writes it: 12 are rows, 2 are columns. The
// window of the result says that the grid of 8 and 3 is that of the 2048 and the 12, which stand as
// second and third of batch and positions.
TEST(StatedWindowsTest, TheWindowOfTheResultTellsBatchAndPositionsApart) {
  const auto parsed = hlo::ParseHloText(R"(HloModule m
ENTRY e {
  x = bf16[12,2048,7168,1]{2,1,0,3} parameter(0)
  w = bf16[2,2048,7168,1]{2,1,3,0} parameter(1)
  ROOT y = bf16[12,2048,2,2048]{3,1,0,2} convolution(x, w), window={size=2x1 pad=1_1x0_0 rhs_reversal=1x0}, dim_labels=1bf0_0oi1->1b0f
})");
  ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
  const Instruction& product = *parsed->module->entry()->root();
  const configs::Config config = configs::LoadConfig("v5p-2x2x1", {}).value();
  const target::Target target(config);
  StatedWindows windows{
      .iterations = {4, 1, 8, 3, 1, 1, 14}, .estimate = {}, .result = {2, 4, 32, 4}};
  const auto grid = GridOfProduct(product, windows, target);
  ASSERT_TRUE(grid.has_value());
  EXPECT_EQ(grid->columns, 4);
  EXPECT_EQ(grid->column_positions, 1);
  EXPECT_EQ(grid->rows, 8);
  EXPECT_EQ(grid->row_positions, 3);
  EXPECT_EQ(grid->depth, 14);
  // A window of something else: the batch is first.
  windows.result = {12, 2048};
  const auto in_order = GridOfProduct(product, windows, target);
  ASSERT_TRUE(in_order.has_value());
  EXPECT_EQ(in_order->rows, 1);
  EXPECT_EQ(in_order->column_positions, 8);
  EXPECT_EQ(in_order->row_positions, 3);
}

// [32,64,512] by [32,4096,512] over batches of 11: three of them, and four blocks of columns, which
// libtpu 0.0.52 states in this order.
TEST(StatedWindowsTest, BatchedProductsMayHaveTheirBatchFirst) {
  const auto parsed = hlo::ParseHloText(R"(HloModule m
ENTRY e {
  q = bf16[32,64,512]{2,1,0} parameter(0)
  c = bf16[32,4096,512]{2,1,0} parameter(1)
  ROOT y = bf16[32,64,4096]{2,1,0} convolution(q, c), window={size=32 stride=31 pad=0_0 lhs_dilate=32}, dim_labels=0bf_0oi->0bf
})");
  ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
  const Instruction& product = *parsed->module->entry()->root();
  const configs::Config config = configs::LoadConfig("v7x-1x1x1", {}).value();
  const target::Target target(config);
  const StatedWindows windows{
      .iterations = {3, 4, 1, 1, 2}, .estimate = {}, .result = {11, 8, 8}};
  const auto grid = GridOfProduct(product, windows, target);
  ASSERT_TRUE(grid.has_value());
  EXPECT_EQ(grid->batch_positions, 3);
  EXPECT_EQ(grid->columns, 4);
  EXPECT_EQ(grid->rows, 1);
  EXPECT_EQ(grid->depth, 2);
}

}  // namespace
}  // namespace tpusim::kernels
