#include "workloads/sharding/factors/factor_propagation.h"

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

// A sharding with open dimensions unless said otherwise.
Sharding Dims(std::vector<Axes> axes, bool open = true) {
  Sharding sharding;
  for (Axes& dim : axes) sharding.dims.push_back({std::move(dim), open, 0});
  return sharding;
}

struct Case {
  std::vector<Factor> factors;
  std::vector<TensorFactors> tensors;
  OpView op;

  void Put(size_t tensor, const Sharding& sharding) {
    op.tensors.resize(tensors.size());
    FillView(sharding, tensors[tensor], factors, &op.tensors[tensor]);
  }
  std::string Axes_(size_t tensor, size_t factor) const {
    return ToString(op.tensors[tensor].factors[factor].axes, XY());
  }
};

// (i,k),(k,j)->(i,j), all of size 16.
Case Matmul() {
  Case c;
  c.factors = {{16}, {16}, {16, FactorKind::kReduction}};
  c.tensors = {{{0}, {2}}, {{2}, {1}}, {{0}, {1}}};
  c.op.num_operands = 2;
  return c;
}

const std::vector<Flow> kBoth3 = {Flow::kBoth, Flow::kBoth, Flow::kBoth};

TEST(FactorPropagation, BasicTakesWhatConflictsWithNothing) {
  Case c = Matmul();
  c.Put(0, Dims({{X()}, {}}));
  c.Put(1, Dims({{}, {Y()}}));
  c.Put(2, Dims({{}, {}}));
  EXPECT_EQ(PropagateBasic(c.factors, kBoth3, c.op), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(c.Axes_(2, 0), "x");
  EXPECT_EQ(c.Axes_(2, 1), "y");
}

// Both i and j want x: nobody gets it.
TEST(FactorPropagation, BasicLeavesConflictsAlone) {
  Case c = Matmul();
  c.Put(0, Dims({{X()}, {}}));
  c.Put(1, Dims({{}, {X()}}));
  c.Put(2, Dims({{}, {}}));
  EXPECT_EQ(PropagateBasic(c.factors, kBoth3, c.op), (std::vector<bool>(3, false)));
}

// Equal sources: the first operand's factor wins.
TEST(FactorPropagation, AggressiveResolvesByFirstSource) {
  Case c = Matmul();
  c.Put(0, Dims({{X()}, {}}));
  c.Put(1, Dims({{}, {X()}}));
  c.Put(2, Dims({{}, {}}));
  EXPECT_EQ(PropagateAggressive(c.factors, kBoth3, c.op), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(c.Axes_(2, 0), "x");
  EXPECT_EQ(c.Axes_(2, 1), "");
}

// j's source is four times as large as i's.
TEST(FactorPropagation, AggressiveResolvesByLargerSource) {
  Case c = Matmul();
  c.factors[1].size = 64;
  c.Put(0, Dims({{X()}, {}}));
  c.Put(1, Dims({{}, {X()}}));
  c.Put(2, Dims({{}, {}}));
  PropagateAggressive(c.factors, kBoth3, c.op);
  EXPECT_EQ(c.Axes_(2, 0), "");
  EXPECT_EQ(c.Axes_(2, 1), "x");
}

// In elementwise ops tensors are equal and the factor with more shards goes first.
TEST(FactorPropagation, AggressiveElementwiseResolvesByShards) {
  Case c;
  c.factors = {{16}, {16}};
  c.tensors = {{{0}, {1}}, {{0}, {1}}, {{0}, {1}}};
  c.op.num_operands = 2;
  c.op.elementwise = true;
  c.Put(0, Dims({{X()}, {}}));
  c.Put(1, Dims({{}, {Y(), X()}}));
  c.Put(2, Dims({{}, {}}));
  PropagateAggressive(c.factors, {Flow::kBoth, Flow::kBoth}, c.op);
  EXPECT_EQ(c.Axes_(2, 0), "");
  EXPECT_EQ(c.Axes_(2, 1), "y,x");
}

TEST(FactorPropagation, ClosedDimensionsAndPinnedAxesStay) {
  for (const bool aggressive : {false, true}) {
    Case c;
    c.factors = {{16}};
    c.tensors = {{{0}}, {{0}}};
    c.op.num_operands = 1;
    c.Put(0, Dims({{X()}}));
    c.Put(1, Dims({{}}, /*open=*/false));
    const auto run = aggressive ? PropagateAggressive : PropagateBasic;
    EXPECT_EQ(run(c.factors, {Flow::kBoth}, c.op), (std::vector<bool>{false, false}));
    Sharding pinned = Dims({{}});
    pinned.replicated = {X()};
    c.Put(1, pinned);
    EXPECT_EQ(run(c.factors, {Flow::kBoth}, c.op), (std::vector<bool>{false, false}));
    Sharding unreduced = Dims({{}});
    unreduced.unreduced = {X()};
    c.Put(1, unreduced);
    EXPECT_EQ(run(c.factors, {Flow::kBoth}, c.op), (std::vector<bool>{false, false}));
    // Only the free piece of an axis.
    pinned.replicated = {XMinor()};
    c.Put(1, pinned);
    EXPECT_EQ(run(c.factors, {Flow::kBoth}, c.op), (std::vector<bool>{false, true}));
    EXPECT_EQ(c.Axes_(1, 0), "x:(1)2");
  }
}

TEST(FactorPropagation, OneListMayContinueAnother) {
  Case c;
  c.factors = {{16}};
  c.tensors = {{{0}}, {{0}}};
  c.op.num_operands = 1;
  c.Put(0, Dims({{X()}}));
  c.Put(1, Dims({{X(), Y()}}));
  EXPECT_EQ(ToString(CompatibleAxes(c.op, 0, Flow::kBoth), XY()), "x,y");
  // Only operands may speak: the result's y is not news for them.
  EXPECT_EQ(ToString(CompatibleAxes(c.op, 0, Flow::kForward), XY()), "x");
  EXPECT_TRUE(CompatibleAxes(c.op, 0, Flow::kNone).empty());
  c.Put(1, Dims({{Y()}}));
  EXPECT_TRUE(CompatibleAxes(c.op, 0, Flow::kBoth).empty());
  c.Put(1, Dims({{XMajor()}}));
  EXPECT_EQ(ToString(CompatibleAxes(c.op, 0, Flow::kBoth), XY()), "x");
}

// Two operands that disagree: no source, and nothing moves.
TEST(FactorPropagation, DisagreementOverOneFactor) {
  Case c;
  c.factors = {{16}};
  c.tensors = {{{0}}, {{0}}, {{0}}};
  c.op.num_operands = 2;
  c.Put(0, Dims({{X()}}));
  c.Put(1, Dims({{Y()}}));
  c.Put(2, Dims({{}}));
  EXPECT_EQ(PropagateAggressive(c.factors, {Flow::kBoth}, c.op), (std::vector<bool>(3, false)));
}

// [8] -> [2,4] over x=4: the factors are 2 and 4; x fills the first and goes on.
TEST(FactorPropagation, AnAxisIsCutAtFactors) {
  Case c;
  c.factors = {{2}, {4}};
  c.tensors = {{{0, 1}}, {{0}, {1}}};
  c.op.num_operands = 1;
  c.Put(0, Dims({{X()}}));
  c.Put(1, Dims({{}, {}}));
  PropagateAggressive(c.factors, {Flow::kBoth, Flow::kBoth}, c.op);
  EXPECT_EQ(c.Axes_(1, 0), "x:(1)2");
  EXPECT_EQ(c.Axes_(1, 1), "x:(2)2");
  // And together again.
  EXPECT_EQ(ToString(DimAxes(c.op.tensors[0], {0, 1}, c.factors), XY()), "x");
}

// [6] -> [3,2] over x=4: 3 and 4 have no common divisor, so x overflows and
// blocks the dimension.
TEST(FactorPropagation, OverflowBlocks) {
  Case c;
  c.factors = {{3}, {2}};
  c.tensors = {{{0, 1}}, {{0}, {1}}};
  c.op.num_operands = 1;
  c.Put(0, Dims({{X()}}));
  c.Put(1, Dims({{}, {Y()}}));
  EXPECT_EQ(PropagateAggressive(c.factors, {Flow::kBoth, Flow::kBoth}, c.op),
            (std::vector<bool>{false, false}));
  EXPECT_EQ(ToString(DimAxes(c.op.tensors[0], {0, 1}, c.factors), XY()), "x");
}

TEST(FactorPropagation, WithoutOverlap) {
  EXPECT_EQ(WithoutOverlap(X(), {Y()}), X());
  EXPECT_EQ(WithoutOverlap(X(), {XMinor()}), XMajor());
  EXPECT_EQ(WithoutOverlap(X(), {XMajor()}), std::nullopt);
}

}  // namespace
}  // namespace tpusim::sharding
