// Kernels of every operator family on v5e, with the arithmetic by hand.

#include "tests/workloads/kernels/kernel_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "tests/workloads/kernels/fused_product.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/kernels/tiling/kernels.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/needed_share.h"
#include "workloads/kernels/view/product.h"

namespace tpusim::kernels {
namespace {

Instruction* MakeGather(hlo::TestModule& m, Shape table, int64_t count, Shape result) {
  Instruction* t = m.Param(table);
  Instruction* indices = m.Param(S32({count, 1}));
  Instruction* gather = m.Add(Opcode::kGather, std::move(result), {t, indices});
  auto* numbers = gather->mutable_attrs().mutable_gather_dimension_numbers();
  numbers->add_offset_dims(1);
  numbers->add_collapsed_slice_dims(0);
  numbers->add_start_index_map(0);
  numbers->set_index_vector_dim(1);
  gather->mutable_attrs().add_gather_slice_sizes(1);
  gather->mutable_attrs().add_gather_slice_sizes(table.dims[1]);
  return gather;
}

// NHWC images, HWIO kernels.
void SetImageDimensions(Instruction* conv) {
  auto* numbers = conv->mutable_attrs().mutable_convolution_dimension_numbers();
  numbers->set_input_feature_dimension(3);
  numbers->set_kernel_input_feature_dimension(2);
  numbers->set_kernel_output_feature_dimension(3);
  numbers->set_output_feature_dimension(3);
  for (int s : {1, 2}) {
    numbers->add_input_spatial_dimensions(s);
    numbers->add_kernel_spatial_dimensions(s - 1);
    numbers->add_output_spatial_dimensions(s);
  }
}

TEST_F(KernelFamilies, GatherMovesTheRowsThatItPicks) {
  Instruction* gather = MakeGather(m_, F32({32000, 1024}), 2048, F32({2048, 1024}));
  // 2048 rows of 1024 words.
  const IndexedAccess access = IndexedAccessOf(*gather, target_);
  EXPECT_EQ(access.count, 2048);
  EXPECT_EQ(access.slice_bytes, Bytes(4096));
  // 8 scalar operations and one issue per row; 256 x 8 registers are stored.
  EXPECT_EQ(Work(gather).scalar, 2048 * 9);
  EXPECT_EQ(Work(gather).valu, 2048);
  // Rows in and out (8 MiB each) and the indices (2048 x 1 words in tiles of 8 x
  // 128: 1 MiB), not the table of 131 MB.
  ExpectMoved(Build(gather), Bytes(17 * kMiB));
}

TEST_F(KernelFamilies, ANarrowRowDragsItsNeighbourAlong) {
  // Two rows of bf16 share a 32-bit word: 2 x 2048 bytes for one row.
  const Shape table = MakeShape(PrimitiveType::kBf16, {32000, 1024});
  Instruction* gather = MakeGather(m_, table, 16, MakeShape(PrimitiveType::kBf16, {16, 1024}));
  EXPECT_EQ(IndexedAccessOf(*gather, target_).slice_bytes, Bytes(4096));
  // A row of three words is one granule of 32 bytes.
  Instruction* thin = MakeGather(m_, F32({32000, 3}), 16, F32({16, 3}));
  EXPECT_EQ(IndexedAccessOf(*thin, target_).slice_bytes, Bytes(32));
}

TEST_F(KernelFamilies, ScatterReadsCombinesAndWrites) {
  Instruction* table = m_.Param(F32({32000, 1024}));
  Instruction* indices = m_.Param(S32({2048, 1}));
  Instruction* updates = m_.Param(F32({2048, 1024}));
  const auto scatter_with = [&](hlo::Computation* combiner) {
    Instruction* scatter = m_.Add(Opcode::kScatter, F32({32000, 1024}), {table, indices, updates});
    auto* numbers = scatter->mutable_attrs().mutable_scatter_dimension_numbers();
    numbers->add_update_window_dims(1);
    numbers->add_inserted_window_dims(0);
    numbers->add_scatter_dims_to_operand_dims(0);
    numbers->set_index_vector_dim(1);
    scatter->set_called({combiner});
    return scatter;
  };
  Instruction* add = scatter_with(m_.Reducer(Opcode::kAdd));
  // Updates in, rows in and out: 8 MiB each; the indices 1 MiB.
  EXPECT_EQ(Moved(Build(add)), Bytes(25 * kMiB));
  // Two transfers per row: 8 + 2 scalar cycles.
  EXPECT_EQ(Work(add).scalar, 2048 * 10);
  hlo::Computation* second = m_.module().AddComputation("second");
  hlo::TestModule::Param(second, F32({}));
  hlo::TestModule::Param(second, F32({}));  // the root: the update wins
  Instruction* set = scatter_with(second);
  ExpectMoved(Build(set), Bytes(17 * kMiB));
  EXPECT_EQ(Work(set).scalar, 2048 * 9);
}

TEST_F(KernelFamilies, SortIsABitonicNetwork) {
  // 1024 keys: 10 * 11 / 2 rounds.
  EXPECT_EQ(SortRounds(1024), 55);
  EXPECT_EQ(SortRounds(1000), 55);
  EXPECT_EQ(SortRounds(1), 0);
  // Four times what VMEM holds: the parts (1), merges over two and four parts, one
  // and two rounds that span parts, each merge finished inside: 1 + 3 + 2.
  EXPECT_EQ(StreamedPasses(4096, 1024), 6);
  EXPECT_EQ(StreamedPasses(1024, 1024), 1);

  hlo::Computation* less = m_.module().AddComputation("less");
  Instruction* a = hlo::TestModule::Param(less, F32({}));
  Instruction* b = hlo::TestModule::Param(less, F32({}));
  hlo::TestModule::Add(less, Opcode::kCompare, hlo::Pred(), {a, b});
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* sort = m_.Add(Opcode::kSort, F32({1024, 1024}), {x});
  hlo::SetDimensions(sort, {1});
  sort->set_called({less});
  // 1024 registers. Strides 1 to 64 cross lanes: 10 + 9 + .. + 4 = 49 rounds of
  // two rotations, compare, take, choose; strides 128, 256, 512: 3 + 2 + 1 = 6
  // rounds of half a compare and a take.
  EXPECT_EQ(Work(sort).xlu, 49 * 2 * 1024);
  EXPECT_EQ(Work(sort).valu, 49 * 3 * 1024 + 6 * 1.5 * 1024);
  // In and out once.
  EXPECT_EQ(Moved(Build(sort)), Bytes(8 * kMiB));
}

TEST_F(KernelFamilies, TopKHalvesTheDataEveryLevel) {
  Instruction* x = m_.Param(F32({8, 1024}));
  Instruction* top = m_.Add(Opcode::kTopk, hlo::MakeTupleShape({F32({8, 1}), S32({8, 1})}), {x});
  top->mutable_attrs().set_k(1);
  // k = 1: ten levels of one round over 4, 2, 1, 1/2 .. of 8 registers, values and
  // indices: 8 (1 - 2^-10) x (1 compare + 2 takes + 2 choices; 4 rotations) where
  // they cross lanes, and the indices are made first (8).
  const double data = 8 * (1 - 1.0 / 1024);
  EXPECT_DOUBLE_EQ(Work(top).valu, 5 * data + 8);
  EXPECT_DOUBLE_EQ(Work(top).xlu, 4 * data);
}

TEST_F(KernelFamilies, ConvolutionIsOneProductPerTap) {
  Instruction* x = m_.Param(MakeShape(PrimitiveType::kBf16, {8, 28, 28, 128}));
  Instruction* w = m_.Param(MakeShape(PrimitiveType::kBf16, {3, 3, 128, 128}));
  Instruction* conv =
      m_.Add(Opcode::kConvolution, MakeShape(PrimitiveType::kBf16, {8, 28, 28, 128}), {x, w});
  SetImageDimensions(conv);
  hlo::WindowDim dim;
  dim.size = 3;
  dim.padding_low = dim.padding_high = 1;
  hlo::SetWindow(conv, {dim, dim});
  const Product p = ProductOf(*conv, target_).value();
  EXPECT_EQ(p.m, 8 * 28 * 28);
  EXPECT_EQ(p.k, 9 * 128);
  EXPECT_EQ(p.n, 128);
  EXPECT_EQ(p.halo_rows, 2);
  // 9 weight tiles of 6272 rows on four arrays, by rows: 9 x 1568 cycles at least.
  const isa::Kernel kernel = Build(conv);
  const int64_t cycles =
      timing::TimeBlock(target_.chip(), kernel.block).mxu.value() * kernel.Steps();
  EXPECT_GE(cycles, 9 * 1568);
  EXPECT_LT(cycles, 9 * 1568 * 3 / 2);
  // No patches: input, weights and output, and halos, stay below twice the input.
  EXPECT_LT(Moved(kernel).value(), 3 * 8 * 28 * 32 * 128 * 2);
}

// Window of 3 x 5, by input features, on arrays of 128 rows.
TEST_F(KernelFamilies, TapsOfFewFeaturesShareTheRowsOfTheArray) {
  const auto depth = [&](int64_t features, int64_t wide) {
    Instruction* x = m_.Param(MakeShape(PrimitiveType::kBf16, {8, 64, 64, features}));
    Instruction* w = m_.Param(MakeShape(PrimitiveType::kBf16, {3, wide, features, 128}));
    Instruction* conv = m_.Add(Opcode::kConvolution,
                               MakeShape(PrimitiveType::kBf16, {8, 62, 65 - wide, 128}), {x, w});
    SetImageDimensions(conv);
    hlo::WindowDim rows, columns;
    rows.size = 3;
    columns.size = wide;
    hlo::SetWindow(conv, {rows, columns});
    return ProductOf(*conv, target_).value().k;
  };
  EXPECT_EQ(depth(3, 5), 3 * 5 * 3);    // as they are
  EXPECT_EQ(depth(12, 5), 3 * 128);     // 5 x 16 of 128 rows for each row of the window
  EXPECT_EQ(depth(16, 9), 3 * 256);     // 9 x 16 = 144
  EXPECT_EQ(depth(20, 5), 3 * 5 * 24);  // all taps, 20 features in three times 8 sublanes
  EXPECT_EQ(depth(64, 5), 3 * 5 * 128);
}

TEST_F(KernelFamilies, PatchesOfAnImageAreTiled) {
  // Windows side by side, three features: the padded image is as large as what the
  // products read of it, and still moves in tiles.
  Instruction* x = m_.Param(MakeShape(PrimitiveType::kBf16, {8, 224, 224, 3}));
  Instruction* w = m_.Param(MakeShape(PrimitiveType::kBf16, {16, 16, 3, 768}));
  Instruction* conv =
      m_.Add(Opcode::kConvolution, MakeShape(PrimitiveType::kBf16, {8, 14, 14, 768}), {x, w});
  SetImageDimensions(conv);
  hlo::WindowDim dim;
  dim.size = dim.stride = 16;
  hlo::SetWindow(conv, {dim, dim});
  const Product p = ProductOf(*conv, target_).value();
  EXPECT_EQ(p.k, 16 * 16 * 3);  // all taps in the rows, one after the other
  // 128 lanes in memory for 3 features.
  EXPECT_DOUBLE_EQ(p.lhs_density, 128.0 / 3);
  const isa::Kernel kernel = Build(conv);
  // The image once at least: 8 x 224 rows of 224 x 128 elements.
  EXPECT_GE(Moved(kernel).value(), int64_t{8} * 224 * 224 * 128 * 2);
  EXPECT_LT(Moved(kernel).value(), int64_t{2} * 8 * 224 * 224 * 128 * 2);
}

// The stem of ResNet, 16 pictures.
TEST_F(KernelFamilies, FewFeaturesArePermutedForEveryResult) {
  Instruction* x = m_.Param(MakeShape(PrimitiveType::kBf16, {16, 224, 224, 3}));
  Instruction* w = m_.Param(MakeShape(PrimitiveType::kBf16, {7, 7, 3, 64}));
  Instruction* conv =
      m_.Add(Opcode::kConvolution, MakeShape(PrimitiveType::kBf16, {16, 112, 112, 64}), {x, w});
  SetImageDimensions(conv);
  hlo::WindowDim dim;
  dim.size = 7;
  dim.stride = 2;
  dim.padding_low = 2;
  dim.padding_high = 3;
  hlo::SetWindow(conv, {dim, dim});
  const isa::Kernel kernel = Build(conv);
  // Two permutations for every register of 8 results, the part of a block that a depth of 147 =
  // 128 + 19 leaves included.
  const double registers = 16.0 * 112 * 112 / 8;
  EXPECT_NEAR(static_cast<double>(kernel.block.xlu) * kernel.FullSteps(), 2 * registers,
              0.01 * registers);
}

// A convolution's gradient contracts the batch and all positions.
TEST_F(KernelFamilies, GradientsOfWeightsMayHaveTheInputInTheArrays) {
  const auto gradient = [&](int64_t features) {
    Instruction* x = m_.Param(MakeShape(PrimitiveType::kBf16, {32, 56, 56, features}));
    Instruction* dy = m_.Param(MakeShape(PrimitiveType::kBf16, {32, 56, 56, 64}));
    Instruction* conv = m_.Add(Opcode::kConvolution,
                               MakeShape(PrimitiveType::kBf16, {3, 3, features, 64}), {x, dy});
    auto* numbers = conv->mutable_attrs().mutable_convolution_dimension_numbers();
    numbers->set_input_batch_dimension(3);
    numbers->set_input_feature_dimension(0);
    numbers->set_kernel_input_feature_dimension(0);
    numbers->set_kernel_output_feature_dimension(3);
    numbers->set_output_batch_dimension(2);
    numbers->set_output_feature_dimension(3);
    for (int s : {1, 2}) {
      numbers->add_input_spatial_dimensions(s);
      numbers->add_kernel_spatial_dimensions(s);
      numbers->add_output_spatial_dimensions(s - 1);
    }
    hlo::WindowDim dim;
    dim.size = 56;
    dim.padding_low = dim.padding_high = 1;
    hlo::SetWindow(conv, {dim, dim});
    return conv;
  };
  const Instruction* conv = gradient(128);
  const Product product = ProductOf(*conv, target_).value();
  EXPECT_EQ(std::tuple(product.m, product.k, product.n), std::tuple(9 * 128, 32 * 56 * 56, 64));
  const Product turned = TurnedGradient(*conv, product, target_).value();
  EXPECT_EQ(std::tuple(turned.m, turned.k, turned.n), std::tuple(64, 32 * 56 * 56, 9 * 128));
  // 64 rows through 9 x 784 tiles on four arrays: half of 1152 rows through 784.
  const isa::Kernel kernel = Build(conv);
  EXPECT_EQ(kernel.block.mxu.m, 64);
  configs::ChipParams chip = target_.chip();
  chip.mxu.efficiency = 1;
  const double mxu = static_cast<double>(timing::TimeBlock(chip, kernel.block).mxu.value());
  EXPECT_NEAR(mxu * kernel.FullSteps(), 64 * 9 * 784 / 4, 0.02 * 64 * 9 * 784 / 4);
  // Taps of more features than a quarter of the columns have tiles of their own.
  const auto columns = [&](int64_t features) {
    const Instruction* of = gradient(features);
    return TurnedGradient(*of, ProductOf(*of, target_).value(), target_).value().n;
  };
  EXPECT_EQ(columns(64), 9 * 128);
  EXPECT_EQ(columns(32), 9 * 32);
}

TEST_F(KernelFamilies, SingleFeaturesRunOnTheVectorUnits) {
  Instruction* x = m_.Param(F32({8, 512, 256}));
  Instruction* w = m_.Param(F32({4, 1, 256}));
  Instruction* conv = m_.Add(Opcode::kConvolution, F32({8, 512, 256}), {x, w});
  conv->mutable_attrs().set_feature_group_count(256);
  auto* numbers = conv->mutable_attrs().mutable_convolution_dimension_numbers();
  numbers->set_kernel_input_feature_dimension(1);
  numbers->add_output_spatial_dimensions(1);
  hlo::WindowDim dim;
  dim.size = 4;
  hlo::SetWindow(conv, {dim});
  EXPECT_TRUE(RunsOnVectorUnits(*conv));
  // Four taps of eight operations, two cycles, over 8 x 64 x 2 registers.
  EXPECT_EQ(Work(conv).valu, 4 * 8 * 1024);
  // Neighbours are in other rows of a register, or, with positions outside, in other registers.
  EXPECT_EQ(Work(conv).xlu, 4 * 1024);
  conv->set_shape(hlo::WithOrder(conv->shape(), {2, 0, 1}));
  EXPECT_EQ(Work(conv).xlu, 0);
}

TEST_F(KernelFamilies, RaggedDotHasOneProductPerGroup) {
  Instruction* lhs = m_.Param(MakeShape(PrimitiveType::kBf16, {4096, 1024}));
  Instruction* rhs = m_.Param(MakeShape(PrimitiveType::kBf16, {8, 1024, 2048}));
  Instruction* sizes = m_.Param(S32({8}));
  Instruction* dot =
      m_.Add(Opcode::kRaggedDot, MakeShape(PrimitiveType::kBf16, {4096, 2048}), {lhs, rhs, sizes});
  auto* ragged = dot->mutable_attrs().mutable_ragged_dot_dimension_numbers();
  ragged->mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
  ragged->mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(1);
  ragged->add_lhs_ragged_dimensions(0);
  ragged->add_rhs_group_dimensions(0);
  const Product p = ProductOf(*dot, target_).value();
  EXPECT_EQ(p.batch, 8);
  EXPECT_EQ(p.m, 512);
  EXPECT_EQ(p.k, 1024);
  EXPECT_EQ(p.n, 2048);
}

// 4096 rows in 8 groups with weights of 1024 x 2048, or the same contracted.
Instruction* MakeRaggedDot(hlo::TestModule& m, bool contracts) {
  Instruction* lhs = m.Param(MakeShape(PrimitiveType::kBf16, {4096, 1024}));
  Instruction* rhs = m.Param(contracts ? MakeShape(PrimitiveType::kBf16, {4096, 2048})
                                       : MakeShape(PrimitiveType::kBf16, {8, 1024, 2048}));
  Instruction* sizes = m.Param(S32({8}));
  Instruction* dot = m.Add(Opcode::kRaggedDot,
                           contracts ? MakeShape(PrimitiveType::kBf16, {8, 1024, 2048})
                                     : MakeShape(PrimitiveType::kBf16, {4096, 2048}),
                           {lhs, rhs, sizes});
  auto* ragged = dot->mutable_attrs().mutable_ragged_dot_dimension_numbers();
  ragged->mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(contracts ? 0 : 1);
  ragged->mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(contracts ? 0 : 1);
  ragged->add_lhs_ragged_dimensions(0);
  if (!contracts) ragged->add_rhs_group_dimensions(0);
  return dot;
}

TEST_F(KernelFamilies, StatedGroupsOfARaggedDot) {
  Instruction* dot = MakeRaggedDot(m_, /*contracts=*/false);
  const auto time = [&] { return timing::KernelTime(target_.chip(), Build(dot)); };
  const Picoseconds equal = time();
  const Bytes equal_bytes = Moved(Build(dot));

  // Four groups of 1024 rows are four products; half the weights are not read:
  // 4 x 1024 x 2048 x 2 bytes.
  hlo::SetRaggedSizes(dot, {1024, 1024, 0, 0, 1024, 1024, 0, 0});
  Product p = ProductOf(*dot, target_).value();
  EXPECT_EQ(p.batch, 4);
  EXPECT_EQ(p.m, 1024);
  EXPECT_TRUE(p.groups.empty());
  EXPECT_NEAR(static_cast<double>((equal_bytes - Moved(Build(dot))).value()),
              4.0 * 1024 * 2048 * 2, 1e4);
  EXPECT_EQ(hlo::CostOf(*dot)->flops.value(), int64_t{2} * 4096 * 1024 * 2048);

  // Sizes that differ: 2500 + 1000 + 500 + 96 rows.
  hlo::SetRaggedSizes(dot, {2500, 0, 1000, 500, 0, 0, 96, 0});
  p = ProductOf(*dot, target_).value();
  EXPECT_EQ(p.batch, 1);
  EXPECT_EQ(p.m, 2500);
  EXPECT_THAT(p.groups, ::testing::ElementsAre(2500, 1000, 500, 96));
  EXPECT_EQ(AllRows(p), 4096);
  // Tiles of 128 rows: 20 + 9 + 5 + 1 of the groups, where groups of about equal size have one more
  // than 32 for each but the last. Columns of 1280 would fit: two halves.
  EXPECT_EQ(Build(dot).grid[2].count, 35);
  EXPECT_EQ(Build(dot).grid[1].count, 2);
  EXPECT_EQ(Build(dot).block.mxu.m, 128);
  EXPECT_EQ(Build(dot).block.mxu.k, 1024);
  // Never faster than the arrays: 2 x 4096 x 1024 x 2048 FLOPs.
  EXPECT_GT(ToSeconds(time()), 2.0 * 4096 * 1024 * 2048 / target_.chip().MxuPeak().value());

  // A quarter of the rows takes far less, and has a quarter of the FLOPs.
  hlo::SetRaggedSizes(dot, {1000, 24, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(Build(dot).grid[2].count, 8 + 1);
  EXPECT_LT(time() * 5, equal * 2);
  EXPECT_EQ(hlo::CostOf(*dot)->flops.value(), int64_t{2} * 1024 * 1024 * 2048);

  hlo::SetRaggedSizes(dot, {0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_GT(time(), Picoseconds(0));
  EXPECT_EQ(hlo::CostOf(*dot)->flops.value(), 0);
}

TEST_F(KernelFamilies, StatedGroupsOfAContraction) {
  Instruction* dot = MakeRaggedDot(m_, /*contracts=*/true);
  hlo::SetRaggedSizes(dot, {4000, 96, 0, 0, 0, 0, 0, 0});
  const Product p = ProductOf(*dot, target_).value();
  // Empty groups have a result too, of zeros.
  EXPECT_THAT(p.groups, ::testing::ElementsAre(4000, 96, 0, 0, 0, 0, 0, 0));
  EXPECT_TRUE(p.groups_of_k);
  EXPECT_EQ(p.m, 1024);
  EXPECT_EQ(AllDepth(p), 4096);
  // All eight results are written, however many blocks the groups are cut into.
  const timing::KernelTraffic traffic = timing::TrafficOf(Build(dot));
  EXPECT_NEAR(static_cast<double>(traffic.written.value()), 8.0 * 1024 * 2048 * 2, 1e5);
}

TEST_F(KernelFamilies, PoolingWindowsCombineTheirElements) {
  Instruction* x = m_.Param(F32({8, 32, 32, 128}));
  Instruction* zero = hlo::AddConstant(m_.entry(), PrimitiveType::kF32, 0);
  Instruction* pool = m_.Add(Opcode::kReduceWindow, F32({8, 16, 16, 128}), {x, zero});
  hlo::WindowDim one, two;
  two.size = two.stride = 2;
  hlo::SetWindow(pool, {one, two, two, one});
  pool->set_called({m_.Reducer(Opcode::kMaximum)});
  // Rows: one combination over 8 x 16 x 4 registers, columns: over 8 x 16 x 2
  // through the cross-lane unit, then 256 registers out.
  EXPECT_EQ(Work(pool).valu, 512 + 256 + 256);
  EXPECT_EQ(Work(pool).xlu, 256);
}

TEST_F(KernelFamilies, ArgmaxReducesTwoArrays) {
  hlo::Computation* c = m_.module().AddComputation("argmax");
  Instruction* v = hlo::TestModule::Param(c, F32({}));
  Instruction* i = hlo::TestModule::Param(c, S32({}));
  Instruction* w = hlo::TestModule::Param(c, F32({}));
  Instruction* j = hlo::TestModule::Param(c, S32({}));
  Instruction* more = hlo::TestModule::Add(c, Opcode::kCompare, hlo::Pred(), {v, w});
  Instruction* value = hlo::TestModule::Add(c, Opcode::kSelect, F32({}), {more, v, w});
  Instruction* index = hlo::TestModule::Add(c, Opcode::kSelect, S32({}), {more, i, j});
  hlo::TestModule::Add(c, Opcode::kTuple, hlo::MakeTupleShape({F32({}), S32({})}), {value, index});
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* n = m_.Param(S32({1024, 1024}));
  Instruction* none = hlo::AddConstant(m_.entry(), PrimitiveType::kF32, 0);
  Instruction* zero = hlo::AddIntConstant(m_.entry(), PrimitiveType::kS32, 0);
  Instruction* reduce =
      m_.Add(Opcode::kReduce, hlo::MakeTupleShape({F32({1024}), S32({1024})}), {x, n, none, zero});
  hlo::SetDimensions(reduce, {1});
  reduce->set_called({c});
  // Three operations per register of 1024, then 128 registers of partial results are
  // transposed, sixteen together, with eight pops per sixteen, for both arrays.
  EXPECT_EQ(Work(reduce).valu, 3 * 1024 + 3 * 128);
  EXPECT_EQ(Work(reduce).xlu, 2 * (128 + 128 / 16 * 8));
  // Both arrays in, both results (4 KiB each) out.
  EXPECT_GE(Moved(Build(reduce)).value(), 8 * kMiB + 8 * kKiB);
}

TEST_F(KernelFamilies, RandomBitsCostTheirRounds) {
  Instruction* state = m_.Param(MakeShape(PrimitiveType::kU32, {4}));
  Instruction* random = m_.Add(Opcode::kRngBitGenerator,
                               hlo::MakeTupleShape({MakeShape(PrimitiveType::kU32, {4}),
                                                    MakeShape(PrimitiveType::kU32, {1024, 1024})}),
                               {state});
  random->mutable_attrs().set_rng_algorithm(hlo::pb::RNG_PHILOX);
  // 65 operations per word: 1024 registers, and one for the state.
  EXPECT_EQ(Work(random).valu, 65 * 1025);
}

TEST_F(KernelFamilies, ComplexProductsAreFourRealOnes) {
  const Shape c64 = MakeShape(PrimitiveType::kC64, {256, 256});
  Instruction* dot = m_.Add(Opcode::kDot, c64, {m_.Param(c64), m_.Param(c64)});
  dot->mutable_attrs().mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
  dot->mutable_attrs().mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(0);
  EXPECT_EQ(ProductOf(*dot, target_).value().repeats, 4);
}

TEST_F(KernelFamilies, ProductsOfF64AreThoseOfTheirDigits) {
  // Eight digits in bf16, two by two: 4 x 4 pairs of three products; complex ones four times.
  for (const auto& [type, products] :
       {std::pair(PrimitiveType::kF64, 48), std::pair(PrimitiveType::kC128, 192)}) {
    const Shape shape = MakeShape(type, {256, 256});
    Instruction* dot = m_.Add(Opcode::kDot, shape, {m_.Param(shape), m_.Param(shape)});
    dot->mutable_attrs().mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
    dot->mutable_attrs().mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(0);
    const Product product = ProductOf(*dot, target_).value();
    EXPECT_EQ(product.repeats, products);
    EXPECT_EQ(product.format, isa::NumberFormat::kBf16);
  }
}

TEST_F(KernelFamilies, NarrowTypesAreTiledInMoreRows) {
  EXPECT_EQ(target_.TileOf(MakeShape(PrimitiveType::kS8, {1024, 1024})),
            (std::vector<int64_t>{32, 128}));
  EXPECT_EQ(target_.TileOf(MakeShape(PrimitiveType::kPred, {8, 1024})),
            (std::vector<int64_t>{8, 128}));
  EXPECT_EQ(target_.TileOf(MakeShape(PrimitiveType::kBf16, {1, 1024})),
            (std::vector<int64_t>{2, 128}));
  EXPECT_EQ(target_.TileOf(MakeShape(PrimitiveType::kS4, {1024, 1024})),
            (std::vector<int64_t>{64, 128}));
  EXPECT_EQ(target_.TileOf(MakeShape(PrimitiveType::kBf16, {100})), (std::vector<int64_t>{256}));
  // 40 rows of 8-bit elements take five tiles of 8, where 64 take two of 32.
  EXPECT_EQ(target_.PaddedSize(MakeShape(PrimitiveType::kS8, {40, 100})), Bytes(40 * 128));
  // Two 4-bit elements to a byte.
  EXPECT_EQ(target_.PaddedSize(MakeShape(PrimitiveType::kS4, {64, 128})), Bytes(64 * 64));
}

// A lone operation runs whole if its arrays take no more than 1024 registers and four
// times the operand and twice the result fit 16 MiB; else in windows of 128 registers.
TEST_F(KernelFamilies, LoneOperationsRunWholeOrInFixedWindows) {
  const auto steps = [&](const target::Target& target, PrimitiveType type, int64_t rows) {
    Instruction* x = m_.Param(MakeShape(type, {rows, 1024}));
    const Instruction* e = m_.Add(Opcode::kExponential, x->shape(), {x});
    return BuildKernel(*e, target).value().Steps();
  };
  // [1024,1024] are 1024 registers. bf16: 4 * 2 MiB + 2 * 2 MiB = 12 MiB fit; f32: 24 MiB do not.
  EXPECT_EQ(steps(target_, PrimitiveType::kBf16, 1024), 1);
  EXPECT_EQ(steps(target_, PrimitiveType::kF32, 1024), 8);
  // 4096 registers / 128. Two cores take a window each. Where sixteen windows of 1024
  // registers (4 MiB) fit the 64 MiB of v7x, those.
  EXPECT_EQ(steps(target_, PrimitiveType::kBf16, 4096), 32);
  const configs::Config v5p = configs::LoadConfig("v5p-2x2x1", {}).value();
  EXPECT_EQ(steps(target::Target(v5p), PrimitiveType::kBf16, 4096), 16);
  const configs::Config v7x = configs::LoadConfig("v7x-2x2x1", {}).value();
  EXPECT_EQ(steps(target::Target(v7x), PrimitiveType::kBf16, 4096), 4);
}

// The exponential of a product follows it register by register. A row less its maximum
// has to wait for the block.
TEST_F(KernelFamilies, ASoftmaxWaitsForItsProduct) {
  Instruction* a = m_.Param(F32({1024, 128}));
  Instruction* b = m_.Param(F32({128, 1024}));
  const Epilogue exponential = [](Instruction* x) {
    return hlo::TestModule::Add(x->parent(), Opcode::kExponential, x->shape(), {x});
  };
  EXPECT_EQ(Build(FusedProduct(m_, a, b, exponential)).block.latency, Cycles(0));
  // Maximum: 128 registers of partial results are transposed in eight squares with eight
  // pops each; the 1024 maxima (one register) are rotated to their rows. (128 + 64 + 1) *
  // 9 / 3 = 579 cycles on the cross-lane units; the VALUs need less. A step rounds up.
  const isa::Kernel kernel = Build(FusedProduct(m_, a, b, LessMaximum(m_, 1)));
  const double steps = kernel.FullSteps();  // the last one has part of a block
  const double cycles = static_cast<double>(kernel.block.latency.value()) * steps;
  EXPECT_GE(cycles, 579);
  EXPECT_LE(cycles, 579 + 6 * steps);
}

TEST_F(KernelFamilies, UnknownOperationsAreNamed) {
  Instruction* x = m_.Param(F32({8, 8}));
  Instruction* odd = m_.Add(Opcode::kInfeed, F32({8, 8}), {x});
  EXPECT_THAT(Message(BuildKernel(*odd, target_).status()), ::testing::HasSubstr("'infeed'"));
}

}  // namespace
}  // namespace tpusim::kernels
