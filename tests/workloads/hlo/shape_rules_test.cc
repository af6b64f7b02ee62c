// Rules of single operators beyond the usual: what they give and what they refuse.
#include "hlo_test_util.h"
#include "workloads/hlo/rules/shape_inference.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

Shape Of(PrimitiveType type, std::vector<int64_t> dims) { return MakeShape(type, std::move(dims)); }

class ShapeRulesTest : public ::testing::Test {
 protected:
  static std::string Infer(const Instruction* i) {
    const auto shape = InferShape(*i);
    return shape.ok() ? shape->ToString() : "error: " + Message(shape.status());
  }
  Instruction* P(std::vector<int64_t> dims, PrimitiveType type = PrimitiveType::kF32) {
    return t_.Param(MakeShape(type, std::move(dims)));
  }
  Instruction* Op(Opcode op, std::vector<Instruction*> operands, Shape own = F32({})) {
    return t_.Add(op, std::move(own), std::move(operands));
  }
  TestModule t_;
};

TEST_F(ShapeRulesTest, ElementTypes) {
  EXPECT_EQ(Infer(Op(Opcode::kAnd, {P({2}), P({2})})), "error: is not defined for f32");
  EXPECT_EQ(Infer(Op(Opcode::kTanh, {P({2}, PrimitiveType::kS32)})),
            "error: is not defined for s32");
  EXPECT_EQ(
      Infer(Op(Opcode::kShiftLeft, {P({2}, PrimitiveType::kPred), P({2}, PrimitiveType::kPred)})),
      "error: is not defined for pred");
  EXPECT_EQ(Infer(Op(Opcode::kPower, {P({2}, PrimitiveType::kS32), P({2}, PrimitiveType::kS32)})),
            "s32[2]");
  EXPECT_EQ(Infer(Op(Opcode::kAbs, {P({2}, PrimitiveType::kC64)})), "f32[2]");
  EXPECT_EQ(Infer(Op(Opcode::kAbs, {P({2}, PrimitiveType::kS32)})), "s32[2]");
  EXPECT_EQ(Infer(Op(Opcode::kImag, {P({2}, PrimitiveType::kC128)}, Of(PrimitiveType::kF64, {2}))),
            "f64[2]");
  EXPECT_EQ(Infer(Op(Opcode::kComplex, {P({2}), P({2})})), "c64[2]");
  EXPECT_EQ(
      Infer(Op(Opcode::kComplex, {P({2}, PrimitiveType::kBf16), P({2}, PrimitiveType::kBf16)})),
      "error: parts of type bf16");
  // As many random bits as the number has.
  EXPECT_THAT(Infer(Op(Opcode::kStochasticConvert, {P({2}), P({2}, PrimitiveType::kU16)})),
              HasSubstr("random bits of type u16"));
}

TEST_F(ShapeRulesTest, StateOfRandomNumbersIsAnArray) {
  const auto state = [&](Shape shape) {
    return Infer(Op(Opcode::kRngGetAndUpdateState, {}, std::move(shape)));
  };
  EXPECT_EQ(state(MakeShape(PrimitiveType::kU64, {2})), "u64[2]");
  EXPECT_THAT(state(MakeTokenShape()), ::testing::HasSubstr("0 operands give token"));
  EXPECT_THAT(state(MakeTupleShape({F32({2})})), ::testing::HasSubstr("0 operands give (f32[2])"));
}

TEST_F(ShapeRulesTest, BitcastConvertTradesWidthForADimension) {
  Instruction* bytes = P({8, 4}, PrimitiveType::kU8);
  EXPECT_EQ(Infer(Op(Opcode::kBitcastConvert, {bytes}, F32({8}))), "f32[8]");
  EXPECT_THAT(Infer(Op(Opcode::kBitcastConvert, {bytes}, Of(PrimitiveType::kU16, {8, 2}))),
              HasSubstr("does not make one u16"));
  EXPECT_EQ(Infer(Op(Opcode::kBitcastConvert, {P({3})}, S32({3}))), "s32[3]");
  EXPECT_THAT(Infer(Op(Opcode::kBitcast, {P({3})}, F32({4}))), HasSubstr("differ in size"));
}

// f32[2,16,8] in 2 batches of 16 rows of 8, 3 groups.
TEST_F(ShapeRulesTest, RaggedDotInItsThreeModes) {
  const auto ragged = [&](Instruction* rhs, Instruction* sizes, const DotDims& dims, int64_t dim,
                          std::optional<int64_t> group) {
    Instruction* dot = Op(Opcode::kRaggedDot, {P({2, 16, 8}), rhs, sizes});
    SetDotDims(dot, dims);
    auto& n = *dot->mutable_attrs().mutable_ragged_dot_dimension_numbers();
    n.add_lhs_ragged_dimensions(dim);
    if (group.has_value()) n.add_rhs_group_dimensions(*group);
    return Infer(dot);
  };
  Instruction* sizes = P({3}, PrimitiveType::kS32);
  // Rows: [b,m,k] x [g,b,k,n] -> [b,m,n].
  EXPECT_EQ(ragged(P({3, 2, 8, 5}), sizes, {{2}, {2}, {0}, {1}}, 1, 0), "f32[2,16,5]");
  // Contraction: [b,m,k] x [b,k,n] -> [g,b,m,n].
  EXPECT_EQ(ragged(P({2, 8, 5}), sizes, {{2}, {1}, {0}, {0}}, 2, std::nullopt), "f32[3,2,16,5]");
  // Batch: [b,m,k] x [b,k,n] -> [b,m,n].
  EXPECT_EQ(ragged(P({2, 8, 5}), sizes, {{2}, {1}, {0}, {0}}, 0, std::nullopt), "f32[2,16,5]");
  EXPECT_THAT(ragged(P({4, 2, 8, 5}), sizes, {{2}, {2}, {0}, {1}}, 1, 0),
              HasSubstr("group sizes s32[3] for the groups of f32[4,2,8,5]"));
  EXPECT_THAT(ragged(P({2, 8, 5}), sizes, {{2}, {1}, {0}, {0}}, 1, std::nullopt),
              HasSubstr("group dimensions {}"));
  EXPECT_THAT(ragged(P({2, 8, 5}), sizes, {{2}, {1}, {0}, {0}}, 7, std::nullopt),
              HasSubstr("1 ragged dimensions"));
}

// NCHW by OIHW, 8 images in 4 groups, as the gradient of a depthwise convolution.
TEST_F(ShapeRulesTest, ConvolutionInBatchGroups) {
  Instruction* conv = Op(Opcode::kConvolution, {P({8, 3, 10}), P({4, 3, 4})});
  auto& n = *conv->mutable_attrs().mutable_convolution_dimension_numbers();
  n.set_input_feature_dimension(1);
  n.set_kernel_input_feature_dimension(1);
  n.set_output_feature_dimension(1);
  n.add_input_spatial_dimensions(2);
  n.add_kernel_spatial_dimensions(2);
  n.add_output_spatial_dimensions(2);
  SetWindow(conv, {{4, 1, 0, 0, 2, 2}});  // input dilated to 19, window to 7: 13 positions
  conv->mutable_attrs().set_batch_group_count(4);
  EXPECT_EQ(Infer(conv), "f32[2,4,13]");
  conv->mutable_attrs().set_batch_group_count(8);
  EXPECT_THAT(Infer(conv), HasSubstr("output features of f32[4,3,4] in 8 groups"));
  conv->mutable_attrs().set_batch_group_count(2);
  conv->mutable_attrs().set_feature_group_count(3);
  EXPECT_THAT(Infer(conv), HasSubstr("input features"));
}

TEST_F(ShapeRulesTest, Fft) {
  const auto fft = [&](Instruction* in, pb::FftType type, std::vector<int64_t> lengths) {
    Instruction* i = Op(Opcode::kFft, {in});
    i->mutable_attrs().set_fft_type(type);
    for (int64_t length : lengths) i->mutable_attrs().add_fft_length(length);
    return Infer(i);
  };
  Instruction* half = P({3, 8, 9}, PrimitiveType::kC64);
  EXPECT_EQ(fft(half, pb::FFT, {8, 9}), "c64[3,8,9]");
  EXPECT_EQ(fft(half, pb::IRFFT, {8, 16}), "f32[3,8,16]");  // 16 / 2 + 1 = 9
  EXPECT_EQ(fft(half, pb::IRFFT, {8, 17}), "f32[3,8,17]");  // 17 / 2 + 1 = 9
  EXPECT_EQ(fft(P({3, 8, 16}), pb::RFFT, {8, 16}), "c64[3,8,9]");
  EXPECT_EQ(fft(P({3, 8, 16}, PrimitiveType::kF64), pb::RFFT, {16}), "c128[3,8,9]");
  EXPECT_EQ(fft(half, pb::FFT, {9, 8}), "error: transform length 9 of c64[3,8,9]");
  EXPECT_EQ(fft(half, pb::RFFT, {9}), "error: RFFT of c64[3,8,9]");
  EXPECT_EQ(fft(half, pb::FFT, {}), "error: 0 transform lengths of c64[3,8,9]");
}

TEST_F(ShapeRulesTest, Solvers) {
  EXPECT_EQ(Infer(Op(Opcode::kCholesky, {P({2, 3})})), "error: f32[2,3] is no square matrix");
  Instruction* solve = Op(Opcode::kTriangularSolve, {P({5, 4, 4}), P({5, 2, 4})});
  EXPECT_EQ(Infer(solve), "f32[5,2,4]");  // x a = b
  solve->mutable_attrs().mutable_triangular_solve_options()->set_left_side(true);
  EXPECT_EQ(Infer(solve), "error: f32[5,4,4] solves nothing for f32[5,2,4]");
}

// table[batch, row] with a batching dimension, as take_along_axis makes it.
TEST_F(ShapeRulesTest, GatherAndScatterWithBatchingDimensions) {
  Instruction* gather = Op(Opcode::kGather, {P({7, 10}), P({7, 3, 1}, PrimitiveType::kS32)});
  auto& g = *gather->mutable_attrs().mutable_gather_dimension_numbers();
  g.add_collapsed_slice_dims(1);
  g.add_start_index_map(1);
  g.add_operand_batching_dims(0);
  g.add_start_indices_batching_dims(0);
  g.set_index_vector_dim(2);
  gather->mutable_attrs().add_gather_slice_sizes(1);
  gather->mutable_attrs().add_gather_slice_sizes(1);
  EXPECT_EQ(Infer(gather), "f32[7,3]");
  gather->mutable_attrs().set_gather_slice_sizes(1, 2);
  EXPECT_EQ(Infer(gather), "error: slice size 2 of dimension 1 of f32[7,10]");
  gather->mutable_attrs().set_gather_slice_sizes(1, 1);
  g.set_start_indices_batching_dims(0, 1);
  EXPECT_THAT(Infer(gather), HasSubstr("batching dimensions {0} of f32[7,10] and {1}"));

  const auto scatter = [&](Instruction* updates) {
    Instruction* i = Op(Opcode::kScatter, {P({7, 10}), P({7, 3, 1}, PrimitiveType::kS32), updates});
    auto& s = *i->mutable_attrs().mutable_scatter_dimension_numbers();
    s.add_inserted_window_dims(1);
    s.add_scatter_dims_to_operand_dims(1);
    s.add_input_batching_dims(0);
    s.add_scatter_indices_batching_dims(0);
    s.set_index_vector_dim(2);
    return Infer(i);
  };
  EXPECT_EQ(scatter(P({7, 3})), "f32[7,10]");
  EXPECT_EQ(scatter(P({7, 4})), "error: updates f32[7,4] for indices s32[7,3,1]");
  EXPECT_THAT(scatter(P({7, 3, 1})), HasSubstr("updates f32[7,3,1] for indices"));
}

TEST_F(ShapeRulesTest, VariadicOperandsAgree) {
  Instruction* a = P({8, 4});
  Instruction* sort = Op(Opcode::kSort, {a, P({8, 5})});
  SetDimensions(sort, {0});
  EXPECT_EQ(Infer(sort), "error: operands f32[8,4] and f32[8,5]");
  Instruction* reduce = Op(Opcode::kReduce, {a, P({}, PrimitiveType::kS32)});
  SetDimensions(reduce, {0});
  EXPECT_EQ(Infer(reduce), "error: initial value s32[] of f32[8,4]");
  Instruction* pool = Op(Opcode::kSelectAndScatter, {a, P({4, 4}), P({})});
  SetWindow(pool, {{2, 2}, {1}});
  EXPECT_EQ(Infer(pool), "f32[8,4]");
  SetWindow(pool, {{2, 1}, {1}});
  EXPECT_EQ(Infer(pool), "error: source f32[4,4] for f32[7,4] windows");
}

TEST_F(ShapeRulesTest, AsynchronousPairs) {
  Instruction* a = P({8, 4});
  const Shape f = F32({8, 4}), gathered = F32({32, 4});
  Instruction* gather = Op(Opcode::kAllGatherStart, {a}, MakeTupleShape({f, gathered}));
  SetDimensions(gather, {0});
  EXPECT_EQ(Infer(gather), "(f32[8,4], f32[32,4])");
  EXPECT_EQ(Infer(Op(Opcode::kAllGatherDone, {gather})), "f32[32,4]");
  gather->set_shape(MakeTupleShape({gathered, gathered}));
  EXPECT_THAT(Infer(gather), HasSubstr("does not hold the operands"));
  // Both ways of writing an all-reduce in flight.
  EXPECT_EQ(Infer(Op(Opcode::kAllReduceStart, {a}, f)), "f32[8,4]");
  EXPECT_EQ(Infer(Op(Opcode::kAllReduceStart, {a}, MakeTupleShape({f, f}))),
            "(f32[8,4], f32[8,4])");
  Instruction* copy = Op(Opcode::kCopyStart, {a}, MakeTupleShape({f, f, S32({})}));
  EXPECT_EQ(Infer(Op(Opcode::kCopyDone, {copy})), "f32[8,4]");
  EXPECT_THAT(Infer(Op(Opcode::kSend, {a, a}, MakeTupleShape({f, S32({}), MakeTokenShape()}))),
              HasSubstr("not a token"));
  EXPECT_THAT(Infer(Op(Opcode::kRecvDone, {copy})), HasSubstr("is not (data, context, token)"));
  Instruction* permute = Op(Opcode::kCollectivePermute, {a, P({64, 4}), P({}), P({})});
  permute->mutable_attrs().add_dynamic_slice_sizes(8);
  EXPECT_EQ(Infer(permute), "f32[64,4]");  // in place: the buffer
  Instruction* sizes = P({4}, PrimitiveType::kS32);
  EXPECT_THAT(Infer(Op(Opcode::kRaggedAllToAll, {a, P({8, 5}), sizes, sizes, sizes, sizes})),
              HasSubstr("input f32[8,4] and output f32[8,5]"));
}

TEST(VerifyCalleesTest, ScalarComputationsFitTheElements) {
  TestModule t;
  Computation* integers = t.Reducer(Opcode::kAdd, PrimitiveType::kS32);
  Instruction* p = t.Param(F32({4}));
  Instruction* reduce =
      t.Add(Opcode::kReduce, F32({}), {p, AddConstant(t.entry(), PrimitiveType::kF32, 0)});
  SetDimensions(reduce, {0});
  reduce->set_called({integers});
  EXPECT_EQ(Message(Verify(t.module())),
            "reduce, reduce: parameter 0 of reducer is s32[], not f32[]");
  Computation* predicate = t.module().AddComputation("predicate");
  Instruction* a = TestModule::Param(predicate, F32({}));
  TestModule::Add(predicate, Opcode::kCompare, Pred(), {a, TestModule::Param(predicate, F32({}))})
      ->mutable_attrs()
      .set_comparison_direction("LT");
  reduce->set_called({predicate});
  EXPECT_EQ(Message(Verify(t.module())),
            "reduce, reduce: the result of predicate is pred[], not f32[]");
}

}  // namespace
}  // namespace tpusim::hlo
