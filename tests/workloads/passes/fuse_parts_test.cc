// Fusion around slices, pads and concatenations; and what thinking of it costs.
#include <gtest/gtest.h>

#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/passes/fusion/explanation.h"
#include "workloads/passes/fusion/fuse.h"
#include "workloads/passes/fusion/graph.h"
#include "workloads/passes/fusion/inline_producers.h"
#include "workloads/passes/fusion/plan.h"
#include "workloads/passes/fusion/price.h"

namespace tpusim::passes {
namespace {

constexpr int64_t kRows = 4096, kColumns = 512, kHalf = kColumns / 2;

// Columns [start, start + kHalf) of `x`.
Instruction* HalfOf(SmallModule& m, Instruction* x, int64_t start) {
  Instruction* half = m.Add(Opcode::kSlice, {kRows, kHalf}, {x});
  hlo::SetSlice(half, {{0, kRows, 1}, {start, start + kHalf, 1}});
  return half;
}

Instruction* SideBySide(SmallModule& m, Instruction* a, Instruction* b) {
  Instruction* both = m.Add(Opcode::kConcatenate, {kRows, kColumns}, {a, b});
  hlo::SetDimensions(both, {1});
  return both;
}

TEST(FuseParts, WhatIsCutIsStored) {
  SmallModule m;
  Instruction* x = m.Parameter({kRows, kColumns});
  Instruction* t = m.Add(Opcode::kTanh, {kRows, kColumns}, {x});
  Instruction* product =
      m.Add(Opcode::kMultiply, {kRows, kHalf}, {HalfOf(m, t, 0), HalfOf(m, t, kHalf)});
  m.Return({product});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  EXPECT_EQ(m.Find(Opcode::kTanh).size(), 1u);
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_EQ(fusions[0]->operand(0)->opcode(), Opcode::kTanh);
}

TEST(FuseParts, WhatIsJoinedIsStoredAndWhatFollowsIsNot) {
  SmallModule m;
  Instruction* a = m.Add(Opcode::kTanh, {kRows, kHalf}, {m.Parameter({kRows, kHalf})});
  Instruction* b = m.Parameter({kRows, kHalf});
  Instruction* both = SideBySide(m, a, b);
  m.Return({m.Add(Opcode::kNegate, {kRows, kColumns}, {both})});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  EXPECT_EQ(m.Find(Opcode::kTanh).size(), 1u);
  EXPECT_TRUE(m.Find(Opcode::kNegate).empty());
  EXPECT_EQ(m.Find(Opcode::kFusion).size(), 1u);
}

// Turned halves: a product, a kernel with two results that reads the product once, and one that
// puts them side by side.
TEST(FuseParts, HalvesOfAProductThatAreJoinedAgainTakeThreeKernels) {
  SmallModule m;
  Instruction* x =
      m.Dot({kRows, kColumns}, m.Parameter({kRows, 256}), m.Parameter({256, kColumns}));
  Instruction* sine = m.Parameter({kRows, kHalf});
  Instruction* cosine = m.Parameter({kRows, kHalf});
  Instruction* wide = m.Add(Opcode::kAbs, {kRows, kColumns}, {x});
  Instruction *first = HalfOf(m, wide, 0), *second = HalfOf(m, wide, kHalf);
  const auto times = [&](Instruction* value, Instruction* factor) {
    return m.Add(Opcode::kMultiply, {kRows, kHalf}, {value, factor});
  };
  Instruction* a =
      m.Add(Opcode::kSubtract, {kRows, kHalf}, {times(first, cosine), times(second, sine)});
  Instruction* b = m.Add(Opcode::kAdd, {kRows, kHalf}, {times(second, cosine), times(first, sine)});
  Instruction* both = SideBySide(m, a, b);
  m.Return({both});
  ASSERT_TRUE(Fuse(m.module(), m.target()).ok());
  const auto fusions = m.Find(Opcode::kFusion);
  ASSERT_EQ(fusions.size(), 2u);
  // What every element of the product goes through stays with it.
  EXPECT_EQ(fusions[0]->attrs().fusion_kind(), "kOutput");
  EXPECT_EQ(fusions[0]->called()[0]->root()->opcode(), Opcode::kAbs);
  EXPECT_EQ(fusions[1]->shape().tuple.size(), 2u);
  EXPECT_EQ(m.Find(Opcode::kConcatenate).size(), 1u);
}

// Members that were priced in all to fuse a chain of elementwise operations.
int64_t MembersPriced(int length) {
  SmallModule m;
  Instruction* x = m.Parameter({kRows, kColumns});
  for (int n = 0; n < length; ++n) x = m.Add(Opcode::kTanh, {kRows, kColumns}, {x});
  m.Return({x});
  const fusion::Graph graph(m.entry());
  fusion::Pricing pricing(graph, m.target());
  fusion::Plan plan(graph, pricing);
  fusion::Explanation silent((Records()));
  fusion::InlineProducers(plan, silent);
  return pricing.members_priced();
}

// Each of 100 alone; each with the next, 99 pairs; then, from the front, each kernel with the
// next operation once: 3 to 100 members. 100 + 2 * 99 + (3 + ... + 100 = 5047) = 5345.
TEST(FuseParts, AKernelThatGrowsIsPricedOncePerOperation) {
  EXPECT_EQ(MembersPriced(100), 5345);
  // Kernels have at most 256 members, so twice the chain costs twice as much.
  EXPECT_LT(MembersPriced(4096), MembersPriced(2048) * 2.1);
}

}  // namespace
}  // namespace tpusim::passes
