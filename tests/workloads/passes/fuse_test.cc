#include "workloads/passes/fusion/fuse.h"

#include <gtest/gtest.h>

#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/analysis/in_place.h"

namespace tpusim::passes {
namespace {

TEST(Fuse, ElementwiseChainIsOneKernel) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* y = m.Add(Opcode::kMultiply, {256, 512}, {t, x});
  m.Return({m.Add(Opcode::kAdd, {256, 512}, {y, t})});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_EQ(fusions[0]->attrs().fusion_kind(), "kLoop");
  EXPECT_EQ(fusions[0]->operands().size(), 1u);
  EXPECT_TRUE(m.Find(Opcode::kTanh).empty());
}

TEST(Fuse, ActivationGoesToTheDotThatMakesItsInput) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 256});
  Instruction* w1 = m.Parameter({256, 512});
  Instruction* w2 = m.Parameter({512, 256});
  Instruction* h = m.Dot({256, 512}, x, w1);
  Instruction* a = m.Add(Opcode::kTanh, {256, 512}, {h});
  Instruction* out = m.Dot({256, 256}, a, w2);
  m.Return({m.Add(Opcode::kAdd, {256, 256}, {out, x})});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 2u);
  for (const Instruction* f : fusions) EXPECT_EQ(f->attrs().fusion_kind(), "kOutput");
  // The first holds dot and tanh, the second dot and the residual add.
  EXPECT_EQ(fusions[0]->called()[0]->root()->opcode(), Opcode::kTanh);
  EXPECT_EQ(fusions[1]->called()[0]->root()->opcode(), Opcode::kAdd);
}

TEST(Fuse, SliceOfTheWeightsIsReadThroughTheDot) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 256});
  Instruction* w = m.Parameter({1024, 512});
  Instruction* row = m.Parameter({}, PrimitiveType::kS32);
  Instruction* column = m.Parameter({}, PrimitiveType::kS32);
  Instruction* chunk = m.Add(Opcode::kDynamicSlice, {256, 512}, {w, row, column});
  m.Return({m.Dot({256, 512}, x, chunk)});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  EXPECT_EQ(m.Find(Opcode::kFusion).size(), 1u);
  EXPECT_TRUE(m.Find(Opcode::kDynamicSlice).empty());
}

TEST(Fuse, KernelsThatFollowOneValueElementByElementAreOne) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* y = m.Add(Opcode::kNegate, {256, 512}, {t});
  Instruction* z = m.Add(Opcode::kAbs, {256, 512}, {t});
  m.Return({y, z});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_EQ(fusions[0]->shape().tuple.size(), 2u);
  EXPECT_TRUE(m.Find(Opcode::kTanh).empty());
}

TEST(Fuse, WithoutSeveralResultsAValueIsComputedTwiceOrStored) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  m.Return({m.Add(Opcode::kNegate, {256, 512}, {t}), m.Add(Opcode::kAbs, {256, 512}, {t})});
  ASSERT_TRUE(Fuse(m.module(), m.target(), {.results = false}).ok());
  // Reading x twice is what reading tanh(x) twice is, and tanh(x) need not be written.
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 2u);
  for (const Instruction* f : fusions) EXPECT_EQ(f->operand(0), x);
}

TEST(Fuse, NothingIsComputedTwiceThatOthersNeedAnyway) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* y = m.Parameter({256, 512});
  Instruction* sum = m.Add(Opcode::kAdd, {256, 512}, {x, y});
  Instruction* all = m.Add(Opcode::kAllReduce, {256, 512}, {sum});
  m.Return({all, m.Add(Opcode::kAbs, {256, 512}, {sum})});
  ASSERT_TRUE(Fuse(m.module(), m.target(), {.results = false}).ok());
  // Two arrays instead of one would be read.
  EXPECT_TRUE(m.Find(Opcode::kFusion).empty());
}

Instruction* Convert(SmallModule& m, Instruction* x, PrimitiveType to) {
  return m.entry().Add(Opcode::kConvert, MakeShape(to, x->shape().dims), {x}, "convert");
}

TEST(Fuse, AWideningConversionIsMadeInEveryKernelThatReadsIt) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512}, PrimitiveType::kBf16);
  Instruction* wide = Convert(m, x, PrimitiveType::kF32);
  Instruction* all = m.Add(Opcode::kAllReduce, {256, 512}, {wide});
  m.Return({all, m.Add(Opcode::kNegate, {256, 512}, {wide})});
  ASSERT_TRUE(Fuse(m.module(), m.target(), {.results = false}).ok());
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_EQ(fusions[0]->operand(0), x);
  EXPECT_EQ(m.Find(Opcode::kConvert).size(), 1u);
}

// The sum of all columns of `x`.
Instruction* SumOfRows(SmallModule& m, Instruction* x, Opcode op = Opcode::kAdd) {
  hlo::Computation* adder = m.module().AddComputation("adder");
  const hlo::Shape scalar = hlo::MakeScalarShape(PrimitiveType::kF32);
  adder->set_root(adder->Add(
      op, scalar, {adder->AddParameter(0, scalar, "a"), adder->AddParameter(1, scalar, "b")}));
  Instruction* zero = m.entry().Add(Opcode::kConstant, scalar, {}, "zero");
  Instruction* sum = m.Add(Opcode::kReduce, {x->shape().dims[0]}, {x, zero});
  sum->mutable_attrs().add_dimensions(1);
  sum->set_called({adder});
  return sum;
}

TEST(Fuse, AProductHasTheMaximumOfItsRowsAsASecondResult) {
  SmallModule m;
  Instruction* scores = m.Dot({1024, 512}, m.Parameter({1024, 256}), m.Parameter({256, 512}));
  Instruction* most = SumOfRows(m, scores, Opcode::kMaximum);
  m.Return({scores, most});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_EQ(fusions[0]->attrs().fusion_kind(), "kOutput");
  EXPECT_EQ(fusions[0]->shape().tuple.size(), 2u);
}

TEST(Fuse, SumsOverTheSameArrayAreOneKernelUnlessOneNeedsTheOther) {
  for (const bool needs : {false, true}) {
    SmallModule m;
    Instruction* x = m.Parameter({1024, 512});
    Instruction* mean = SumOfRows(m, x);
    Instruction* other = x;
    if (needs) {
      Instruction* again = m.Add(Opcode::kBroadcast, {1024, 512}, {mean});
      again->mutable_attrs().add_dimensions(0);
      other = m.Add(Opcode::kSubtract, {1024, 512}, {x, again});
    }
    Instruction* square = m.Add(Opcode::kMultiply, {1024, 512}, {other, other});
    m.Return({mean, SumOfRows(m, square)});
    ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
    const auto fusions = m.Find(Opcode::kFusion);
    ASSERT_EQ(fusions.size(), needs ? 2u : 1u);
    EXPECT_EQ(fusions.back()->shape().IsTuple(), !needs);
  }
}

TEST(Fuse, NoKernelWaitsForItself) {
  // y follows x and z follows y through a collective: x and z may not be one kernel.
  SmallModule m;
  Instruction* p = m.Parameter({256, 512});
  Instruction* x = m.Add(Opcode::kTanh, {256, 512}, {p});
  Instruction* y = m.Add(Opcode::kAllReduce, {256, 512}, {x});
  Instruction* z = m.Add(Opcode::kAdd, {256, 512}, {x, y});
  m.Return({x, z});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  for (const Instruction* f : m.Find(Opcode::kFusion)) EXPECT_FALSE(f->shape().IsTuple());
  std::vector<Instruction*> order;
  EXPECT_TRUE(m.entry().TopologicalOrder(&order));
}

TEST(Fuse, AnUpdateInPlaceIsAResultBesideWhatItStores) {
  SmallModule m;
  Instruction* stack = m.Parameter({8, 256, 512});
  Instruction* x = m.Parameter({1, 256, 512});
  Instruction* row = m.Parameter({}, PrimitiveType::kS32);
  Instruction* t = m.Add(Opcode::kTanh, {1, 256, 512}, {x});
  Instruction* stored = m.entry().Add(Opcode::kDynamicUpdateSlice, stack->shape(),
                                      {stack, t, row, row, row}, "stored");
  m.Return({t, stored});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 1u);
  const std::vector<hlo::InPlaceResult> in_place = hlo::InPlaceResults(*fusions[0]);
  ASSERT_EQ(in_place.size(), 1u);
  EXPECT_EQ(fusions[0]->operand(in_place[0].operand), stack);
}

TEST(Fuse, EveryDecisionHasAReason) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  m.Return({m.Add(Opcode::kNegate, {256, 512}, {t})});
  std::vector<Record> said;
  PassContext context(m.target());
  context.records = Records(&said);
  ASSERT_TRUE(Fuse(m.module(), context).ok());
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(ToString(said[0]).starts_with("tanh is computed in negate: ")) << ToString(said[0]);
  EXPECT_EQ(said[0].reason->id, "fusion.inlined");
  EXPECT_EQ(said[0].subject, "tanh");
}

}  // namespace
}  // namespace tpusim::passes
