#include "workloads/passes/layout/layout.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/passes/layout/order_classes.h"
#include "workloads/passes/layout/same_bytes.h"

namespace tpusim::passes {
namespace {

using hlo::MinorToMajor;

Dims OrderOf(const Instruction* i) { return MinorToMajor(i->shape()); }

TEST(OrderClasses, RememberWhichDimensionIsWhich) {
  OrderClasses classes;
  const int32_t a = classes.Add(3), b = classes.Add(3), c = classes.Add(3);
  // b = transpose(a, {2, 0, 1}): dimension 0 of b is dimension 2 of a.
  ASSERT_TRUE(classes.Unite(b, a, {2, 0, 1}));
  ASSERT_TRUE(classes.UniteEqual(c, b));
  EXPECT_EQ(classes.Find(a), classes.Find(c));
  // a with its dimension 1 fastest, then 0: c has its dimension 2 fastest, then 1.
  const Dims of_class = classes.OfClass(a, {1, 0, 2});
  EXPECT_EQ(classes.OfValue(c, of_class), (Dims{2, 1, 0}));
  // The same again is no news; something else is refused.
  EXPECT_TRUE(classes.Unite(c, a, {2, 0, 1}));
  EXPECT_FALSE(classes.UniteEqual(c, a));
}

TEST(SameBytes, RunsOfAReshape) {
  const std::vector<ReshapeRun> runs = ReshapeRuns({4, 9, 3, 1, 8}, {4, 27, 2, 4});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].from, (Dims{1, 2}));
  EXPECT_EQ(runs[1].to, (Dims{1}));
  EXPECT_EQ(runs[2].from, (Dims{4}));
  EXPECT_EQ(runs[2].to, (Dims{2, 3}));
}

TEST(SameBytes, OrderThroughAReshapeKeepsRunsTogether) {
  // [4096,9,3] with 4096 fastest, then 3, then 9.
  EXPECT_EQ(OrderThroughReshape({4096, 9, 3}, {4096, 27}, {0, 2, 1}), (Dims{0, 1}));
  // 9 inside of 3: the run is in another order than the result counts.
  EXPECT_EQ(OrderThroughReshape({4096, 9, 3}, {4096, 27}, {0, 1, 2}), (Dims{}));
  // 4096 between 3 and 9: torn apart.
  EXPECT_EQ(OrderThroughReshape({4096, 9, 3}, {4096, 27}, {2, 0, 1}), (Dims{}));
  EXPECT_EQ(OrderThroughReshape({8, 256}, {8, 1, 2, 128}, {1, 0}), (Dims{3, 2, 0, 1}));
}

TEST(Layout, ArgumentsAndResultsLieWithTheLeastPadding) {
  const SmallModule m;
  const auto order = [&](std::vector<int64_t> dims, PrimitiveType type = PrimitiveType::kF32) {
    return m.target().DefaultOrder(MakeShape(type, std::move(dims)));
  };
  // 9 x 4 x 4096 words; 16 x 3 x 4096 with the 9 second.
  EXPECT_EQ(order({4096, 9, 3}), (Dims{0, 2, 1}));
  EXPECT_EQ(order({2048, 3}), (Dims{0, 1}));
  EXPECT_EQ(order({1024, 1024}), (Dims{1, 0}));
  // 64 of 128 lanes would be padding.
  EXPECT_EQ(order({2048, 64}), (Dims{0, 1}));
  EXPECT_EQ(order({4, 1024, 8, 64}, PrimitiveType::kBf16), (Dims{1, 3, 2, 0}));
  // Two rows of a tile of its own: T(2,128).
  EXPECT_EQ(order({16, 2048, 2, 128}, PrimitiveType::kBf16), (Dims{3, 2, 1, 0}));
  EXPECT_EQ(order({1024, 1, 32}), (Dims{0, 2, 1}));
  EXPECT_EQ(order({1, 1}), (Dims{1, 0}));
}

TEST(Layout, ElementwiseOperationsFollowTheirArguments) {
  SmallModule m;
  Instruction* x = m.Parameter({4096, 9, 3});
  Instruction* v = m.Parameter({4096, 9, 3});
  Instruction* sum = m.Add(Opcode::kAdd, {4096, 9, 3}, {x, v});
  m.Return({sum});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(OrderOf(x), (Dims{0, 2, 1}));
  EXPECT_EQ(OrderOf(sum), (Dims{0, 2, 1}));
  EXPECT_EQ(hlo::MinorToMajor(m.entry().root()->shape().tuple[0]), (Dims{0, 2, 1}));
  EXPECT_TRUE(m.Find(Opcode::kCopy).empty());
}

// The distances of a Gaussian process over three features: the three become the slowest
// dimension, where adding them up crosses neither lanes nor rows.
TEST(Layout, WhatIsReducedGoesToTheOutside) {
  SmallModule m;
  Instruction* x = m.Parameter({2048, 3});
  Instruction* rows = m.Add(Opcode::kBroadcast, {2048, 2048, 3}, {x});
  hlo::SetDimensions(rows, {0, 2});
  Instruction* columns = m.Add(Opcode::kBroadcast, {2048, 2048, 3}, {x});
  hlo::SetDimensions(columns, {1, 2});
  Instruction* apart = m.Add(Opcode::kSubtract, {2048, 2048, 3}, {rows, columns});
  Instruction* zero = hlo::AddConstant(&m.entry(), PrimitiveType::kF32, 0);
  Instruction* sum = m.Add(Opcode::kReduce, {2048, 2048}, {apart, zero});
  hlo::SetDimensions(sum, {2});
  m.Return({sum});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(OrderOf(apart), (Dims{1, 0, 2}));
  EXPECT_EQ(OrderOf(sum), (Dims{1, 0}));
  EXPECT_TRUE(m.Find(Opcode::kCopy).empty());
}

TEST(Layout, ATransposeIntoALayoutThatUndoesItIsABitcast) {
  // Heads before the sequence for a product over a batch of heads, and back.
  SmallModule m;
  Instruction* x = m.Parameter({4, 1024, 8, 128}, PrimitiveType::kBf16);
  Instruction* heads = m.Add(Opcode::kTranspose, {4, 8, 1024, 128}, {x});
  hlo::SetDimensions(heads, {0, 2, 1, 3});
  Instruction* twice = m.Add(Opcode::kAdd, {4, 8, 1024, 128}, {heads, heads});
  Instruction* back = m.Add(Opcode::kTranspose, {4, 1024, 8, 128}, {twice});
  hlo::SetDimensions(back, {0, 2, 1, 3});
  m.Return({back});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_TRUE(m.Find(Opcode::kTranspose).empty());
  EXPECT_EQ(m.Find(Opcode::kBitcast).size(), 2u);
  EXPECT_TRUE(m.Find(Opcode::kCopy).empty());
  EXPECT_EQ(OrderOf(twice), (Dims{3, 1, 2, 0}));
}

TEST(Layout, ATransposeBetweenArgumentAndResultIsOneCopy) {
  SmallModule m;
  Instruction* x = m.Parameter({4096, 2048});
  Instruction* turned = m.Add(Opcode::kTranspose, {2048, 4096}, {x});
  hlo::SetDimensions(turned, {1, 0});
  m.Return({turned});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(m.Find(Opcode::kCopy).size(), 1u);
  EXPECT_EQ(m.Find(Opcode::kBitcast).size(), 1u);
  EXPECT_TRUE(m.Find(Opcode::kTranspose).empty());
}

TEST(Layout, AValueMetWithItsOwnTransposeMoves) {
  SmallModule m;
  Instruction* x = m.Parameter({2048, 2048});
  Instruction* turned = m.Add(Opcode::kTranspose, {2048, 2048}, {x});
  hlo::SetDimensions(turned, {1, 0});
  Instruction* sum = m.Add(Opcode::kAdd, {2048, 2048}, {x, turned});
  m.Return({sum});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(m.Find(Opcode::kTranspose).size(), 1u);
}

TEST(Layout, BatchesOfProductsLieOutside) {
  // [16384,3,3] lies with 16384 along the lanes; the arrays multiply one 3 x 3 after the other.
  SmallModule m;
  Instruction* a = m.Parameter({16384, 3, 3});
  Instruction* b = m.Parameter({16384, 3, 3});
  Instruction* dot = m.Add(Opcode::kDot, {16384, 3, 3}, {a, b});
  hlo::SetDotDims(dot, {{2}, {1}, {0}, {0}});
  m.Return({dot});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(OrderOf(a), (Dims{0, 2, 1}));
  EXPECT_EQ(MinorToMajor(dot->operand(0)->shape()).back(), 0);
  EXPECT_EQ(OrderOf(dot).back(), 0);
  EXPECT_EQ(m.Find(Opcode::kCopy).size(), 3u);  // as the TPU compiler has it
}

TEST(Layout, SumsOfAProductTakeItAsItIsMade) {
  // Sums over keys cost no cross-lane units with the keys outermost, but the arrays do not
  // make that order: a copy would begin another kernel to save some cycles of registers.
  // That holds whatever the rate of HBM.
  for (const char* rate : {"819000000000", "3276000000000"}) {
    SmallModule m("v5e-1x1", {"chip.hbm.bytes_per_second=" + std::string(rate)});
    Instruction* queries = m.Parameter({2, 64, 32});
    Instruction* keys = m.Parameter({2, 64, 32});
    Instruction* dot = m.Add(Opcode::kDot, {2, 64, 64}, {queries, keys});
    hlo::SetDotDims(dot, {{2}, {2}, {0}, {0}});
    Instruction* zero = hlo::AddConstant(&m.entry(), PrimitiveType::kF32, 0);
    Instruction* most = m.Add(Opcode::kReduce, {2, 64}, {dot, zero});
    hlo::SetDimensions(most, {2});
    Instruction* rows = m.Add(Opcode::kBroadcast, {2, 64, 64}, {most});
    hlo::SetDimensions(rows, {0, 1});
    Instruction* less = m.Add(Opcode::kSubtract, {2, 64, 64}, {dot, rows});
    Instruction* weights = m.Add(Opcode::kExponential, {2, 64, 64}, {less});
    Instruction* sum = m.Add(Opcode::kReduce, {2, 64}, {weights, zero});
    hlo::SetDimensions(sum, {2});
    m.Return({sum});
    ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
    EXPECT_EQ(OrderOf(less), OrderOf(dot)) << rate;
    for (const Instruction* user : dot->users()) EXPECT_NE(user->opcode(), Opcode::kCopy) << rate;
  }
}

TEST(Layout, PositionsOfAConvolutionLieOutside) {
  // Three features of an image lie beside the batch, as the TPU compiler has it: T(4,128) over
  // [3,32] or T(8,128) over [32,64], with the arguments' own orders copied.
  SmallModule m;
  Instruction* x = m.Parameter({32, 224, 224, 3}, PrimitiveType::kBf16);
  Instruction* w = m.Parameter({7, 7, 3, 64}, PrimitiveType::kBf16);
  Instruction* conv = m.Add(Opcode::kConvolution, {32, 112, 112, 64}, {x, w});
  auto* numbers = conv->mutable_attrs().mutable_convolution_dimension_numbers();
  numbers->set_input_batch_dimension(0);
  numbers->set_input_feature_dimension(3);
  numbers->set_kernel_input_feature_dimension(2);
  numbers->set_kernel_output_feature_dimension(3);
  numbers->set_output_batch_dimension(0);
  numbers->set_output_feature_dimension(3);
  for (int64_t d : {1, 2}) {
    numbers->add_input_spatial_dimensions(d);
    numbers->add_kernel_spatial_dimensions(d - 1);
    numbers->add_output_spatial_dimensions(d);
  }
  hlo::WindowDim window{.size = 7, .stride = 2, .padding_low = 2, .padding_high = 3};
  hlo::SetWindow(conv, {window, window});
  m.Return({conv});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(OrderOf(x), (Dims{2, 1, 3, 0}));
  const Dims image = OrderOf(conv->operand(0)), out = OrderOf(conv);
  EXPECT_EQ((Dims{image[0], image[1]}), (Dims{0, 3}));
  EXPECT_EQ((Dims{out[0], out[1]}), (Dims{3, 0}));
}

TEST(Layout, BroadcastsOfScalarsAreMadeInEveryOrderThatIsAskedFor) {
  SmallModule m;
  Instruction* x = m.Parameter({4096, 64});
  Instruction* y = m.Parameter({64, 4096});
  Instruction* one = hlo::AddConstant(&m.entry(), PrimitiveType::kF32, 1);
  Instruction* ones = m.Add(Opcode::kBroadcast, {4096, 64}, {one});
  Instruction* turned = m.Add(Opcode::kBroadcast, {64, 4096}, {one});
  m.Return(
      {m.Add(Opcode::kAdd, {4096, 64}, {x, ones}), m.Add(Opcode::kAdd, {64, 4096}, {y, turned})});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_TRUE(m.Find(Opcode::kCopy).empty());
  for (const Instruction* broadcast : m.Find(Opcode::kBroadcast)) {
    EXPECT_EQ(OrderOf(broadcast), OrderOf(broadcast->users()[0]));
  }
}

TEST(Layout, ALoopKeepsOneLayoutForWhatItCarries) {
  SmallModule m;
  Instruction* x = m.Parameter({1024, 8});
  const hlo::Shape carry = hlo::MakeTupleShape({x->shape()});
  hlo::Computation* body = m.module().AddComputation("body");
  Instruction* p = body->AddParameter(0, carry, "p");
  Instruction* in = body->Add(Opcode::kGetTupleElement, x->shape(), {p}, "in");
  Instruction* next = body->Add(Opcode::kAdd, x->shape(), {in, in}, "next");
  body->set_root(body->Add(Opcode::kTuple, carry, {next}, "carry"));
  hlo::Computation* condition = m.module().AddComputation("condition");
  condition->AddParameter(0, carry, "p");
  condition->set_root(condition->Add(Opcode::kConstant, MakeShape(PrimitiveType::kPred, {}), {}));
  Instruction* init = m.entry().Add(Opcode::kTuple, carry, {x}, "init");
  Instruction* loop = m.entry().Add(Opcode::kWhile, carry, {init}, "loop");
  loop->set_called({body, condition});
  m.Return({m.entry().Add(Opcode::kGetTupleElement, x->shape(), {loop}, "out")});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  for (const Instruction* i : {in, next}) EXPECT_EQ(OrderOf(i), (Dims{0, 1}));
  for (const Instruction* i : {init, loop, p, body->root()}) {
    EXPECT_EQ(MinorToMajor(i->shape().tuple[0]), (Dims{0, 1}));
  }
  EXPECT_EQ(MinorToMajor(condition->parameters()[0]->shape().tuple[0]), (Dims{0, 1}));
}

TEST(Layout, OpaqueKernelsSeeTheirArraysRowMajor) {
  SmallModule m;
  Instruction* x = m.Parameter({2048, 64});
  Instruction* call = m.Add(Opcode::kCustomCall, {2048, 64}, {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  m.Return({call});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(OrderOf(x), (Dims{0, 1}));
  EXPECT_EQ(OrderOf(call->operand(0)), (Dims{1, 0}));
  EXPECT_EQ(OrderOf(call), (Dims{1, 0}));
  EXPECT_EQ(m.Find(Opcode::kCopy).size(), 2u);
}

// Lane 0 of each row of a kernel's result, turned so that rows lie along the lanes: the piece is
// cut out of the result as it lies, and the result is not turned as a whole.
TEST(Layout, AnElementOfAnOpaqueTupleIsCopiedAfterItIsCut) {
  SmallModule m;
  Instruction* x = m.Parameter({32, 8192, 128});
  const hlo::Shape results = hlo::MakeTupleShape({x->shape(), x->shape()});
  Instruction* call = m.entry().Add(Opcode::kCustomCall, results, {x}, "call");
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  Instruction* sums = m.entry().Add(Opcode::kGetTupleElement, x->shape(), {call}, "sums");
  sums->mutable_attrs().set_tuple_index(1);
  Instruction* lane = m.Add(Opcode::kSlice, {32, 8192, 1}, {sums});
  hlo::SetSlice(lane, {{0, 32, 1}, {0, 8192, 1}, {0, 1, 1}});
  Instruction* rows = m.Add(Opcode::kReshape, {32, 8192}, {lane});
  m.Return({m.Add(Opcode::kExponential, {32, 8192}, {rows})});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(OrderOf(sums), (Dims{2, 1, 0}));
  ASSERT_EQ(sums->users().size(), 1u);
  EXPECT_EQ(sums->users()[0]->opcode(), Opcode::kSlice);
}

TEST(Layout, AStatedLayoutOfAnArgumentStands) {
  SmallModule m;
  Instruction* x = m.Parameter({1024, 1024});
  x->set_shape(hlo::WithOrder(x->shape(), {0, 1}));
  m.Return({m.Add(Opcode::kNegate, {1024, 1024}, {x})});
  ASSERT_TRUE(AssignLayouts(m.module(), m.context()).ok());
  EXPECT_EQ(OrderOf(x), (Dims{0, 1}));
  EXPECT_EQ(m.Find(Opcode::kCopy).size(), 1u);
}

}  // namespace
}  // namespace tpusim::passes
