// Factors of operations, family by family.
#include "tests/workloads/sharding/rules_test_util.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::MakeShape;
using hlo::MakeTupleShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::S32;
using hlo::TestModule;

TEST(RulesTest, ElementwiseSkipsScalarsAndUnitDimensions) {
  TestModule m;
  Instruction* p = m.Param(hlo::Pred());
  Instruction* a = m.Param(F32({8, 1, 6}));
  EXPECT_EQ(RuleText(m.Add(Opcode::kSelect, F32({8, 1, 6}), {p, a, a})),
            "()(a . b)(a . b)->(a . b) a=8 b=6");
}

TEST(RulesTest, BitcastKeepsThePartsOfAnElementTogether) {
  TestModule m;
  Instruction* a = m.Param(MakeShape(PrimitiveType::kU32, {8}));
  EXPECT_EQ(RuleText(m.Add(Opcode::kBitcastConvert, MakeShape(PrimitiveType::kU16, {8, 2}), {a})),
            "(a)->(a b) a=8 b=2w");
  Instruction* b = m.Param(MakeShape(PrimitiveType::kU16, {8, 2}));
  EXPECT_EQ(RuleText(m.Add(Opcode::kBitcastConvert, MakeShape(PrimitiveType::kU32, {8}), {b})),
            "(a b)->(a) a=8 b=2w");
}

TEST(RulesTest, ReshapeSplitsAndMerges) {
  TestModule m;
  Instruction* a = m.Param(F32({6, 4}));
  EXPECT_EQ(RuleText(m.Add(Opcode::kReshape, F32({24}), {a})), "(a b)->(ab) a=6 b=4");
  EXPECT_EQ(RuleText(m.Add(Opcode::kReshape, F32({2, 12}), {a})), "(ab c)->(a bc) a=2 b=3 c=4");
  // Rows of 5 and rows of 3 have no boundary in common before the end.
  Instruction* c = m.Param(F32({3, 5}));
  EXPECT_EQ(RuleText(m.Add(Opcode::kReshape, F32({5, 3}), {c})),
            "(a c)->(b d) a=3w b=5w c=5w d=3w");
}

TEST(RulesTest, SliceMovesAlongWhatItCuts) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 16, 32}));
  // Whole, cut, and one element of it.
  EXPECT_EQ(RuleText(m.Add(Opcode::kSlice, F32({8, 12, 1}), {a})),
            "(a b c)->(a b .) a=8 b=16p c=32r");
}

TEST(RulesTest, PadOfOneElement) {
  TestModule m;
  Instruction* a = m.Param(F32({1, 16, 8}));
  Instruction* zero = m.Param(F32({}));
  Instruction* pad = m.Add(Opcode::kPad, F32({4, 20, 8}), {a, zero});
  hlo::SetPadding(pad, {{1, 2, 0}, {4, 0, 0}, {0, 0, 0}});
  EXPECT_EQ(RuleText(pad), "(. b c)()->(a b c) a=4p b=16p c=8");
}

TEST(RulesTest, ConcatenateOfUnequalParts) {
  TestModule m;
  Instruction* a = m.Param(F32({1, 8}));
  Instruction* b = m.Param(F32({15, 8}));
  Instruction* both = m.Add(Opcode::kConcatenate, F32({16, 8}), {a, b});
  hlo::SetDimensions(both, {0});
  EXPECT_EQ(RuleText(both), "(. b)(a b)->(a b) a=16p b=8");
}

TEST(RulesTest, ReverseMovesWhatItReverses) {
  TestModule m;
  Instruction* a = m.Param(F32({4, 8}));
  Instruction* reversed = m.Add(Opcode::kReverse, F32({4, 8}), {a});
  hlo::SetDimensions(reversed, {1});
  EXPECT_EQ(RuleText(reversed), "(a b)->(a b) a=4 b=8p");
}

TEST(RulesTest, DynamicSliceIsASumOverWhatItCuts) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 16}));
  Instruction* i = m.Param(S32({}));
  EXPECT_EQ(RuleText(m.Add(Opcode::kDynamicSlice, F32({8, 4}), {a, i, i})),
            "(a b)()()->(a c) a=8 b=16r c=4w");
}

TEST(RulesTest, DynamicUpdateSliceKeepsTheSplitOfItsOperand) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 16}));
  Instruction* update = m.Param(F32({8, 4}));
  Instruction* i = m.Param(S32({}));
  EXPECT_EQ(RuleText(m.Add(Opcode::kDynamicUpdateSlice, F32({8, 16}), {a, update, i, i})),
            "(a b)(a c)()()->(a b) a=8 b=16 c=4w");
}

TEST(RulesTest, ReductionsOfOneAndOfTwo) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 16}));
  Instruction* b = m.Param(S32({8, 16}));
  Instruction* x = m.Param(F32({}));
  Instruction* y = m.Param(S32({}));
  Instruction* sum = m.Add(Opcode::kReduce, F32({16}), {a, x});
  hlo::SetDimensions(sum, {0});
  EXPECT_EQ(RuleText(sum), "(a b)()->(b) a=8r b=16");
  Instruction* argmax =
      m.Add(Opcode::kReduce, MakeTupleShape({F32({16}), S32({16})}), {a, b, x, y});
  hlo::SetDimensions(argmax, {0});
  EXPECT_EQ(RuleText(argmax), "(a b)(a b)()()->(b)(b) a=8p b=16");
}

// table[256, 8], indices[4, 6, 1] -> [4, 6, 8]: an embedding lookup.
TEST(RulesTest, GatherOfRows) {
  TestModule m;
  Instruction* table = m.Param(F32({256, 8}));
  Instruction* indices = m.Param(S32({4, 6, 1}));
  Instruction* gather = m.Add(Opcode::kGather, F32({4, 6, 8}), {table, indices});
  auto* dims = gather->mutable_attrs().mutable_gather_dimension_numbers();
  dims->add_offset_dims(2);
  dims->add_collapsed_slice_dims(0);
  dims->add_start_index_map(0);
  dims->set_index_vector_dim(2);
  for (int64_t size : {1, 8}) gather->mutable_attrs().add_gather_slice_sizes(size);
  EXPECT_EQ(RuleText(gather), "(c d)(a b .)->(a b d) a=4 b=6 c=256r d=8");
}

// take_along_axis: operand[16, 8], indices[16, 3, 1], batched over 16.
TEST(RulesTest, GatherWithBatch) {
  TestModule m;
  Instruction* operand = m.Param(F32({16, 8}));
  Instruction* indices = m.Param(S32({16, 3, 1}));
  Instruction* gather = m.Add(Opcode::kGather, F32({16, 3}), {operand, indices});
  auto* dims = gather->mutable_attrs().mutable_gather_dimension_numbers();
  dims->add_operand_batching_dims(0);
  dims->add_start_indices_batching_dims(0);
  dims->add_collapsed_slice_dims(1);
  dims->add_start_index_map(1);
  dims->set_index_vector_dim(2);
  for (int64_t size : {1, 1}) gather->mutable_attrs().add_gather_slice_sizes(size);
  EXPECT_EQ(RuleText(gather), "(a c)(a b .)->(a b) a=16 b=3 c=8r");
}

// The gradient of the lookup: table[256, 8] += updates[4, 6, 8].
TEST(RulesTest, ScatterOfRows) {
  TestModule m;
  Instruction* table = m.Param(F32({256, 8}));
  Instruction* indices = m.Param(S32({4, 6, 1}));
  Instruction* updates = m.Param(F32({4, 6, 8}));
  Instruction* scatter = m.Add(Opcode::kScatter, F32({256, 8}), {table, indices, updates});
  auto* dims = scatter->mutable_attrs().mutable_scatter_dimension_numbers();
  dims->add_update_window_dims(2);
  dims->add_inserted_window_dims(0);
  dims->add_scatter_dims_to_operand_dims(0);
  dims->set_index_vector_dim(2);
  EXPECT_EQ(RuleText(scatter), "(c d)(a b .)(a b d)->(c d) a=4r b=6r c=256 d=8");
}

struct Conv {
  std::vector<int64_t> input, kernel, result;  // NHWC, HWIO, NHWC
  std::vector<hlo::WindowDim> window;
  int64_t groups = 1;
};

std::string ConvolutionRule(const Conv& conv) {
  TestModule m;
  Instruction* input = m.Param(F32(conv.input));
  Instruction* kernel = m.Param(F32(conv.kernel));
  Instruction* result = m.Add(Opcode::kConvolution, F32(conv.result), {input, kernel});
  auto* dims = result->mutable_attrs().mutable_convolution_dimension_numbers();
  dims->set_input_feature_dimension(3);
  dims->set_kernel_input_feature_dimension(2);
  dims->set_kernel_output_feature_dimension(3);
  dims->set_output_feature_dimension(3);
  for (int64_t d : {1, 2}) {
    dims->add_input_spatial_dimensions(d);
    dims->add_kernel_spatial_dimensions(d - 1);
    dims->add_output_spatial_dimensions(d);
  }
  hlo::SetWindow(result, conv.window);
  result->mutable_attrs().set_feature_group_count(conv.groups);
  return RuleText(result);
}

TEST(RulesTest, ConvolutionHasHalosAlongItsWindows) {
  // Rows have a window of 3, columns one of 1 with stride 1.
  EXPECT_EQ(ConvolutionRule({{8, 16, 12, 4}, {3, 1, 4, 6}, {8, 16, 12, 6}, {{3, 1, 1, 1}, {1}}}),
            "(a d f c)(e . c b)->(a d f b) a=8 b=6 c=4r d=16p e=3w f=12");
}

TEST(RulesTest, ConvolutionOfAKernelGradientContractsItsWindow) {
  // A window of 16 rows in 3 places, likewise 12 columns.
  EXPECT_EQ(ConvolutionRule(
                {{8, 16, 12, 4}, {16, 12, 4, 6}, {8, 3, 3, 6}, {{16, 1, 1, 1}, {12, 1, 1, 1}}}),
            "(a d f c)(d f c b)->(a e g b) a=8 b=6 c=4r d=16r e=3w f=12r g=3w");
}

TEST(RulesTest, ConvolutionGroupsAreTheMajorPartOfTheFeatures) {
  // 8 = 4 groups * 2 input features, 12 = 4 groups * 3 output features.
  EXPECT_EQ(ConvolutionRule({{5, 16, 12, 8}, {1, 1, 2, 12}, {5, 16, 12, 12}, {{1}, {1}}, 4}),
            "(b e f ad)(. . d ac)->(b e f ac) a=4 b=5 c=3 d=2r e=16 f=12");
}

TEST(RulesTest, WindowsMoveAlongWhatTheySlideOver) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 16}));
  Instruction* init = m.Param(F32({}));
  Instruction* pool = m.Add(Opcode::kReduceWindow, F32({8, 8}), {a, init});
  hlo::SetWindow(pool, {{1}, {2, 2}});
  EXPECT_EQ(RuleText(pool), "(a b)()->(a b) a=8 b=16p");
  Instruction* source = m.Param(F32({8, 8}));
  Instruction* gradient = m.Add(Opcode::kSelectAndScatter, F32({8, 16}), {a, source, init});
  hlo::SetWindow(gradient, {{1}, {2, 2}});
  EXPECT_EQ(RuleText(gradient), "(a b)(a b)()->(a b) a=8 b=16p");
}

TEST(RulesTest, SortAndTopK) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 16}));
  Instruction* b = m.Param(S32({8, 16}));
  Instruction* sort = m.Add(Opcode::kSort, MakeTupleShape({F32({8, 16}), S32({8, 16})}), {a, b});
  hlo::SetDimensions(sort, {1});
  EXPECT_EQ(RuleText(sort), "(a b)(a b)->(a b)(a b) a=8 b=16w");
  Instruction* top = m.Add(Opcode::kTopk, MakeTupleShape({F32({8, 3}), S32({8, 3})}), {a});
  EXPECT_EQ(RuleText(top), "(a b)->(a c)(a c) a=8 b=16p c=3w");
}

TEST(RulesTest, FactorisationsAreBatched) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 4, 4}));
  EXPECT_EQ(RuleText(m.Add(Opcode::kCholesky, F32({8, 4, 4}), {a})),
            "(a b c)->(a d e) a=8 b=4w c=4w d=4w e=4w");
  Instruction* b = m.Param(F32({8, 4, 6}));
  Instruction* solve = m.Add(Opcode::kTriangularSolve, F32({8, 4, 6}), {a, b});
  solve->mutable_attrs().mutable_triangular_solve_options()->set_left_side(true);
  EXPECT_EQ(RuleText(solve), "(a d e)(a c b)->(a c b) a=8 b=6 c=4w d=4w e=4w");
  Instruction* fft = m.Add(Opcode::kFft, MakeShape(PrimitiveType::kC64, {8, 4, 6}), {b});
  fft->mutable_attrs().add_fft_length(6);
  EXPECT_EQ(RuleText(fft), "(a b c)->(a b d) a=8 b=4 c=6w d=6w");
}

// lhs[32, 8], rhs[4, 8, 6], sizes[4] -> [32, 6].
TEST(RulesTest, RaggedDotSplitsRowsAndGroups) {
  TestModule m;
  Instruction* lhs = m.Param(F32({32, 8}));
  Instruction* rhs = m.Param(F32({4, 8, 6}));
  Instruction* sizes = m.Param(S32({4}));
  Instruction* dot = m.Add(Opcode::kRaggedDot, F32({32, 6}), {lhs, rhs, sizes});
  auto* dims = dot->mutable_attrs().mutable_ragged_dot_dimension_numbers();
  dims->add_lhs_ragged_dimensions(0);
  dims->add_rhs_group_dimensions(0);
  dims->mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
  dims->mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(1);
  EXPECT_EQ(RuleText(dot), "(b a)(c a d)(e)->(b d) a=8r b=32p c=4r d=6 e=4w");
}

TEST(RulesTest, CustomCallsByTarget) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 16}));
  const auto call = [&](const std::string& target) {
    Instruction* custom = m.Add(Opcode::kCustomCall, F32({8, 16}), {a});
    custom->mutable_attrs().set_custom_call_target(target);
    return RuleText(custom);
  };
  EXPECT_EQ(call("annotate_device_placement"), "(a b)->(a b) a=8 b=16");
  EXPECT_EQ(call("tpu_custom_call"), "(a b)->(c d) a=8w b=16w c=8w d=16w");
  EXPECT_THAT(call("no_such_call"), testing::HasSubstr("'no_such_call' has no sharding rule"));
}

TEST(RulesTest, CollectivesKeepWhatTheyDoNotMove) {
  TestModule m;
  Instruction* a = m.Param(F32({8, 16}));
  Instruction* gather = m.Add(Opcode::kAllGather, F32({32, 16}), {a});
  hlo::SetDimensions(gather, {0});
  EXPECT_EQ(RuleText(gather), "(a c)->(b c) a=8w b=32w c=16");
  EXPECT_EQ(RuleText(m.Add(Opcode::kAllReduce, F32({8, 16}), {a})), "(a b)->(a b) a=8 b=16");
}

TEST(RulesTest, NoRuleNamesTheOp) {
  TestModule m;
  Instruction* a = m.Param(F32({8}));
  EXPECT_THAT(RuleText(m.Add(Opcode::kDynamicReshape, F32({8}), {a})),
              testing::HasSubstr("dynamic-reshape has no sharding rule"));
}

}  // namespace
}  // namespace tpusim::sharding
