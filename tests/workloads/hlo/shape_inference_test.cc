#include "workloads/hlo/rules/shape_inference.h"

#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

class ShapeInferenceTest : public ::testing::Test {
 protected:
  // The inferred shape, or the error.
  static std::string Infer(const Instruction* i) {
    const auto shape = InferShape(*i);
    return shape.ok() ? shape->ToString() : "error: " + Message(shape.status());
  }
  Instruction* Param(std::vector<int64_t> dims, PrimitiveType type = PrimitiveType::kF32) {
    return t_.Param(MakeShape(type, std::move(dims)));
  }
  Instruction* Op(Opcode op, std::vector<Instruction*> operands, Shape own = F32({})) {
    return t_.Add(op, std::move(own), std::move(operands));
  }
  TestModule t_;
};

TEST_F(ShapeInferenceTest, Elementwise) {
  Instruction* a = Param({2, 3});
  Instruction* b = Param({2, 3}, PrimitiveType::kBf16);
  Instruction* scalar = Param({});
  Instruction* predicate = Param({2, 3}, PrimitiveType::kPred);
  EXPECT_EQ(Infer(Op(Opcode::kAdd, {a, a})), "f32[2,3]");
  EXPECT_EQ(Infer(Op(Opcode::kAdd, {a, b})), "f32[2,3]");  // precisions may differ
  EXPECT_THAT(Infer(Op(Opcode::kAdd, {a, scalar})), HasSubstr("operand 1 has shape f32[], not"));
  EXPECT_THAT(Infer(Op(Opcode::kAdd, {a, predicate})), HasSubstr("operand 1 has type pred"));
  Instruction* compare = Op(Opcode::kCompare, {a, a});
  EXPECT_THAT(Infer(compare), HasSubstr("direction '' is not EQ, NE, LT, LE, GT or GE"));
  compare->mutable_attrs().set_comparison_direction("NE");
  EXPECT_EQ(Infer(compare), "pred[2,3]");
  EXPECT_EQ(Infer(Op(Opcode::kSelect, {predicate, a, a})), "f32[2,3]");
  EXPECT_EQ(Infer(Op(Opcode::kSelect, {Param({}, PrimitiveType::kPred), a, a})), "f32[2,3]");
  EXPECT_THAT(Infer(Op(Opcode::kSelect, {a, a, a})), HasSubstr("predicate of type f32"));
  EXPECT_EQ(Infer(Op(Opcode::kClamp, {scalar, a, scalar})), "f32[2,3]");
  EXPECT_EQ(Infer(Op(Opcode::kConvert, {a}, S32({2, 3}))), "s32[2,3]");
}

TEST_F(ShapeInferenceTest, Dot) {
  Instruction* dot = Op(Opcode::kDot, {Param({4, 16, 32}), Param({4, 32, 8})});
  SetDotDims(dot, {{2}, {1}, {0}, {0}});
  EXPECT_EQ(Infer(dot), "f32[4,16,8]");
  SetDotDims(dot, {{1}, {1}, {0}, {0}});
  EXPECT_EQ(Infer(dot), "error: contracting or batch sizes of f32[4,16,32] and f32[4,32,8] differ");
  SetDotDims(dot, {{0}, {0}, {0}, {0}});
  EXPECT_THAT(Infer(dot), HasSubstr("dimension numbers do not fit"));
  SetDotDims(dot, {{7}, {1}, {}, {}});
  EXPECT_THAT(Infer(dot), HasSubstr("dimension numbers do not fit"));
}

TEST_F(ShapeInferenceTest, Layout) {
  Instruction* a = Param({2, 3});
  Instruction* broadcast = Op(Opcode::kBroadcast, {a}, F32({5, 2, 3}));
  SetDimensions(broadcast, {1, 2});
  EXPECT_EQ(Infer(broadcast), "f32[5,2,3]");
  SetDimensions(broadcast, {0, 2});
  EXPECT_EQ(Infer(broadcast), "error: dimension 0 of f32[2,3] does not map to 0 of f32[5,2,3]");
  EXPECT_EQ(Infer(Op(Opcode::kReshape, {a}, F32({6}))), "f32[6]");
  EXPECT_EQ(Infer(Op(Opcode::kReshape, {a}, F32({5}))), "error: cannot reshape f32[2,3] to f32[5]");
  Instruction* transpose = Op(Opcode::kTranspose, {a});
  SetDimensions(transpose, {1, 0});
  EXPECT_EQ(Infer(transpose), "f32[3,2]");
  SetDimensions(transpose, {1, 1});
  EXPECT_EQ(Infer(transpose), "error: {1,1} is no permutation of the dimensions of f32[2,3]");
  Instruction* iota = Op(Opcode::kIota, {}, S32({4, 5}));
  SetDimensions(iota, {2});
  EXPECT_EQ(Infer(iota), "error: dimension 2 of s32[4,5]");
  EXPECT_EQ(Infer(Op(Opcode::kBitcastConvert, {Param({8})}, MakeShape(PrimitiveType::kU8, {8, 4}))),
            "u8[8,4]");
}

TEST_F(ShapeInferenceTest, Pieces) {
  Instruction* a = Param({10, 4});
  Instruction* slice = Op(Opcode::kSlice, {a});
  SetSlice(slice, {{1, 8, 3}, {0, 4, 1}});  // 1, 4, 7
  EXPECT_EQ(Infer(slice), "f32[3,4]");
  SetSlice(slice, {{1, 11, 1}, {0, 4, 1}});
  EXPECT_EQ(Infer(slice), "error: slice [1:11:1] of dimension 0 of f32[10,4]");
  Instruction* i = Param({}, PrimitiveType::kS32);
  Instruction* dynamic = Op(Opcode::kDynamicSlice, {a, i, i});
  SetDynamicSliceSizes(dynamic, {1, 4});
  EXPECT_EQ(Infer(dynamic), "f32[1,4]");
  SetDynamicSliceSizes(dynamic, {11, 4});
  EXPECT_THAT(Infer(dynamic), HasSubstr("size 11 of dimension 0"));
  EXPECT_EQ(Infer(Op(Opcode::kDynamicUpdateSlice, {a, Param({1, 4}), i, i})), "f32[10,4]");
  EXPECT_THAT(Infer(Op(Opcode::kDynamicUpdateSlice, {a, Param({1, 5}), i, i})),
              HasSubstr("update f32[1,5] of f32[10,4]"));
  EXPECT_THAT(Infer(Op(Opcode::kDynamicUpdateSlice, {a, Param({1, 4}), i})),
              HasSubstr("1 indices into"));
  Instruction* concatenate = Op(Opcode::kConcatenate, {a, Param({2, 4}), Param({3, 4})});
  SetDimensions(concatenate, {0});
  EXPECT_EQ(Infer(concatenate), "f32[15,4]");
  SetDimensions(concatenate, {1});
  EXPECT_THAT(Infer(concatenate), HasSubstr("differ beside dimension 1"));
  Instruction* pad = Op(Opcode::kPad, {a, Param({})});
  SetPadding(pad, {{1, 2, 1}, {-1, 0, 0}});  // 10 + 3 + 9, 4 - 1
  EXPECT_EQ(Infer(pad), "f32[22,3]");
  SetPadding(pad, {{-11, 0, 0}, {0, 0, 0}});
  EXPECT_THAT(Infer(pad), HasSubstr("removes more than dimension 0"));
}

TEST_F(ShapeInferenceTest, Reductions) {
  Instruction* a = Param({10, 4});
  Instruction* zero = Param({});
  Instruction* reduce = Op(Opcode::kReduce, {a, zero});
  SetDimensions(reduce, {0});
  EXPECT_EQ(Infer(reduce), "f32[4]");
  Instruction* two = Op(Opcode::kReduce, {a, a, zero, zero});
  SetDimensions(two, {1});
  EXPECT_EQ(Infer(two), "(f32[10], f32[10])");
  SetDimensions(reduce, {2});
  EXPECT_EQ(Infer(reduce), "error: dimensions {2} of f32[10,4]");
  Instruction* window = Op(Opcode::kReduceWindow, {a, zero});
  SetWindow(window, {{2, 2}, {3, 1, 1, 1}});
  EXPECT_EQ(Infer(window), "f32[5,4]");
}

// NHWC by HWIO, 2 groups: 32 x 32 with a 3 x 3 window, stride 2, pads 1 and 1.
TEST_F(ShapeInferenceTest, Convolution) {
  Instruction* conv = Op(Opcode::kConvolution, {Param({8, 32, 32, 16}), Param({3, 3, 8, 64})});
  pb::HloInstructionProto& attrs = conv->mutable_attrs();
  pb::ConvolutionDimensionNumbers& n = *attrs.mutable_convolution_dimension_numbers();
  n.set_input_feature_dimension(3);
  n.set_kernel_input_feature_dimension(2);
  n.set_kernel_output_feature_dimension(3);
  n.set_output_feature_dimension(3);
  for (int d : {1, 2}) {
    n.add_input_spatial_dimensions(d);
    n.add_output_spatial_dimensions(d);
    n.add_kernel_spatial_dimensions(d - 1);
  }
  attrs.set_feature_group_count(2);
  SetWindow(conv, {{3, 2, 1, 1}, {3, 1, 1, 1}});
  EXPECT_EQ(Infer(conv), "f32[8,16,32,64]");  // (34 - 3) / 2 + 1 = 16
  attrs.set_feature_group_count(1);
  EXPECT_THAT(Infer(conv), HasSubstr("input features of"));
  attrs.set_feature_group_count(2);
  SetWindow(conv, {{5, 2, 1, 1}, {3, 1, 1, 1}});
  EXPECT_THAT(Infer(conv), HasSubstr("window does not fit the kernel"));
}

// table[ids] with table [1000,64] and ids [8,16,1].
TEST_F(ShapeInferenceTest, Gather) {
  Instruction* gather =
      Op(Opcode::kGather, {Param({1000, 64}), Param({8, 16, 1}, PrimitiveType::kS32)});
  auto& n = *gather->mutable_attrs().mutable_gather_dimension_numbers();
  n.add_offset_dims(2);
  n.add_collapsed_slice_dims(0);
  n.add_start_index_map(0);
  n.set_index_vector_dim(2);
  gather->mutable_attrs().add_gather_slice_sizes(1);
  gather->mutable_attrs().add_gather_slice_sizes(64);
  EXPECT_EQ(Infer(gather), "f32[8,16,64]");
  n.set_offset_dims(0, 5);
  EXPECT_THAT(Infer(gather), HasSubstr("offset dimensions {5}"));
}

TEST_F(ShapeInferenceTest, TuplesAndCollectives) {
  Instruction* a = Param({8, 4});
  Instruction* tuple = Op(Opcode::kTuple, {a, Param({})});
  EXPECT_EQ(Infer(tuple), "(f32[8,4], f32[])");
  tuple->set_shape(MakeTupleShape({F32({8, 4}), F32({})}));
  Instruction* element = Op(Opcode::kGetTupleElement, {tuple});
  EXPECT_EQ(Infer(element), "f32[8,4]");
  element->mutable_attrs().set_tuple_index(2);
  EXPECT_EQ(Infer(element), "error: index 2 of (f32[8,4], f32[])");
  EXPECT_EQ(Infer(Op(Opcode::kAllReduce, {a, a})), "(f32[8,4], f32[8,4])");
  Instruction* gather = Op(Opcode::kAllGather, {a}, F32({32, 4}));
  SetDimensions(gather, {0});
  EXPECT_EQ(Infer(gather), "f32[32,4]");
  gather->set_shape(F32({30, 4}));
  EXPECT_EQ(Infer(gather), "error: f32[8,4] does not become f32[30,4] along dimension 0");
  Instruction* scatter = Op(Opcode::kReduceScatter, {a}, F32({2, 4}));
  SetDimensions(scatter, {0});
  EXPECT_EQ(Infer(scatter), "f32[2,4]");
  EXPECT_EQ(Infer(Op(Opcode::kAllToAll, {a, a})), "(f32[8,4], f32[8,4])");
  EXPECT_EQ(Infer(Op(Opcode::kPartitionId, {})), "u32[]");
}

}  // namespace
}  // namespace tpusim::hlo
