#include "workloads/hlo/ir/attributes.h"

#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(AttributesTest, WhatIsSetIsRead) {
  TestModule t;
  Instruction* i = t.Param(F32({4}));
  EXPECT_EQ(OnlyDimension(*i), -1);
  SetDimensions(i, {2});
  EXPECT_EQ(OnlyDimension(*i), 2);
  SetDimensions(i, {2, 0});
  EXPECT_THAT(Dimensions(*i), ElementsAre(2, 0));
  EXPECT_EQ(OnlyDimension(*i), -1);

  SetSlice(i, {{1, 5, 2}, {0, 4, 1}});
  EXPECT_THAT(GetSlice(*i), ElementsAre(SliceDim{1, 5, 2}, SliceDim{0, 4, 1}));
  SetDynamicSliceSizes(i, {1, 7});
  EXPECT_THAT(DynamicSliceSizes(*i), ElementsAre(1, 7));
  SetPadding(i, {{1, -2, 3}});
  EXPECT_THAT(GetPadding(*i), ElementsAre(PaddingDim{1, -2, 3}));
  const WindowDim window{3, 2, 1, -1, 4, 5, true};
  SetWindow(i, {window});
  EXPECT_THAT(GetWindow(*i), ElementsAre(window));
  SetSourceTargetPairs(i, {{0, 1}, {1, 0}});
  EXPECT_THAT(SourceTargetPairs(*i), ElementsAre(Pair(0, 1), Pair(1, 0)));
}

TEST(AttributesTest, DefaultsOfTheWireAreFilledIn) {
  TestModule t;
  Instruction* i = t.Param(F32({4}));
  i->mutable_attrs().add_slice_dimensions()->set_limit(3);
  EXPECT_EQ(GetSlice(*i)[0].stride, 1);
  i->mutable_attrs().mutable_window()->add_dimensions()->set_size(2);
  EXPECT_THAT(GetWindow(*i), ElementsAre(WindowDim{2, 1, 0, 0, 1, 1, false}));
  EXPECT_EQ(FeatureGroupCount(*i), 1);
  EXPECT_EQ(BatchGroupCount(*i), 1);
}

TEST(AttributesTest, DotDimsOfDotAndRaggedDot) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  const DotDims dims{{2}, {1}, {0}, {0}};
  for (Opcode op : {Opcode::kDot, Opcode::kRaggedDot}) {
    Instruction* dot = t.Add(op, F32({4}), {p, p});
    SetDotDims(dot, dims);
    EXPECT_EQ(GetDotDims(*dot), dims);
    EXPECT_EQ(dot->attrs().has_dot_dimension_numbers(), op == Opcode::kDot);
  }
  EXPECT_THAT(FreeDims(4, {2}, {0}), ElementsAre(1, 3));
}

// floor((padded - dilated window) / stride) + 1
TEST(AttributesTest, WindowPositions) {
  EXPECT_EQ(WindowPositions(32, {3, 1, 1, 1}), 32);       // (34 - 3) / 1 + 1
  EXPECT_EQ(WindowPositions(32, {3, 2, 0, 1}), 16);       // (33 - 3) / 2 + 1
  EXPECT_EQ(WindowPositions(10, {2, 1, 0, 0, 3, 1}), 7);  // window of 4
  EXPECT_EQ(WindowPositions(4, {2, 1, 0, 0, 1, 2}), 6);   // base of 7
  EXPECT_EQ(WindowPositions(2, {3, 1, 0, 0}), 0);         // does not fit
}

TEST(AttributesTest, FrontendAttributes) {
  TestModule t;
  Instruction* i = t.Param(F32({4}));
  EXPECT_EQ(FrontendAttribute(*i, "a"), std::nullopt);
  SetFrontendAttribute(i, "a", "1");
  SetFrontendAttribute(i, "b", "");
  EXPECT_EQ(FrontendAttribute(*i, "a"), "1");
  EXPECT_EQ(FrontendAttribute(*i, "b"), "");
  RemoveFrontendAttribute(i, "a");
  EXPECT_EQ(FrontendAttribute(*i, "a"), std::nullopt);
  RemoveFrontendAttribute(i, "b");
  EXPECT_FALSE(i->attrs().has_frontend_attributes());
}

}  // namespace
}  // namespace tpusim::hlo
