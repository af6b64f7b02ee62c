#include "workloads/passes/fusion/fuse.h"

#include <gtest/gtest.h>

#include "tests/workloads/passes/small_module.h"

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

TEST(Fuse, AProducerWithTwoKernelsAsUsersStaysAlone) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* y = m.Add(Opcode::kNegate, {256, 512}, {t});
  Instruction* z = m.Add(Opcode::kAbs, {256, 512}, {t});
  m.Return({y, z});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  EXPECT_EQ(m.Find(Opcode::kFusion).size(), 0u);
  EXPECT_EQ(m.Find(Opcode::kTanh).size(), 1u);
}

Instruction* Convert(SmallModule& m, Instruction* x, PrimitiveType to) {
  return m.entry().Add(Opcode::kConvert, MakeShape(to, x->shape().dims), {x}, "convert");
}

TEST(Fuse, AWideningConversionIsMadeInEveryKernelThatReadsIt) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512}, PrimitiveType::kBf16);
  Instruction* wide = Convert(m, x, PrimitiveType::kF32);
  m.Return({m.Add(Opcode::kNegate, {256, 512}, {wide}), m.Add(Opcode::kAbs, {256, 512}, {wide})});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 2u);
  for (const Instruction* f : fusions) EXPECT_EQ(f->operand(0), x);
  EXPECT_TRUE(m.Find(Opcode::kConvert).empty());
}

TEST(Fuse, AConversionIsMadeOnceIfThatIsLess) {
  // To a narrower type, or for somebody who reads the array itself.
  for (const bool narrowing : {true, false}) {
    SmallModule m;
    Instruction* x =
        m.Parameter({256, 512}, narrowing ? PrimitiveType::kF32 : PrimitiveType::kBf16);
    Instruction* c = Convert(m, x, narrowing ? PrimitiveType::kBf16 : PrimitiveType::kF32);
    m.Return({m.Add(Opcode::kNegate, {256, 512}, {c}),
              m.Add(narrowing ? Opcode::kAbs : Opcode::kAllReduce, {256, 512}, {c})});
    ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
    EXPECT_EQ(m.Find(Opcode::kConvert).size(), 1u) << narrowing;
    EXPECT_EQ(m.Find(Opcode::kFusion).size(), 0u) << narrowing;
  }
}

}  // namespace
}  // namespace tpusim::passes
