#include "workloads/spmd/factor_choice.h"

#include <gtest/gtest.h>

#include "tests/workloads/spmd/spmd_test_util.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::FactorKind;
using sharding::Mesh;
using sharding::Sharding;
using sharding::ShardingRule;

class FactorChoiceTest : public testing::Test {
 protected:
  // (m k), (k n) -> (m n), factors in the order m, k, n.
  static ShardingRule Matmul(int64_t m, int64_t k, int64_t n) {
    ShardingRule rule;
    rule.AddFactor(m);
    rule.AddFactor(k, FactorKind::kReduction);
    rule.AddFactor(n);
    rule.operands = {{{0}, {1}}, {{1}, {2}}};
    rule.results = {{{0}, {2}}};
    return rule;
  }
  FactorChoice Choose(const ShardingRule& rule, const std::vector<hlo::Shape>& operand_shapes,
                      const std::vector<Sharding>& operands, const hlo::Shape& result_shape,
                      const Sharding& result, SplitRules splits = {}) {
    std::vector<TensorPlacement> places;
    for (size_t i = 0; i < operands.size(); ++i)
      places.push_back({&operand_shapes[i], &operands[i]});
    auto choice = ChooseFactors(rule, places, {{&result_shape, &result}}, plans_, splits);
    EXPECT_TRUE(choice.ok());
    return *std::move(choice);
  }
  FactorChoice Dot(int64_t m, int64_t k, int64_t n, const Sharding& lhs, const Sharding& rhs,
                   const Sharding& result) {
    SplitRules splits;
    splits.reductions = splits.keep_sums = true;
    return Choose(Matmul(m, k, n), {F32({m, k}), F32({k, n})}, {lhs, rhs}, F32({m, n}), result,
                  splits);
  }

  Mesh mesh_ = MeshOf({4, 2});
  ReshardPlans plans_{mesh_, kV5eLatency};
  const Axes x_ = {{0, 1, 4}}, y_ = {{1, 1, 2}}, none_;
};

TEST_F(FactorChoiceTest, ASplitContractionGivesPartialSums) {
  const FactorChoice choice = Dot(8, 16, 8, Split({{}, x_}), Split({x_, {}}), Split({{}, {}}));
  EXPECT_EQ(choice.axes, (std::vector<Axes>{none_, x_, none_}));
  EXPECT_EQ(choice.results[0].unreduced, x_);
  // All-reduce of 8 x 8 x 4 = 256 bytes: 2 x 3/4.
  EXPECT_EQ(choice.bytes, Bytes(384));
}

TEST_F(FactorChoiceTest, PartialSumsAreScatteredIntoTheResult) {
  const FactorChoice choice = Dot(8, 16, 8, Split({{}, x_}), Split({x_, {}}), Split({x_, {}}));
  EXPECT_EQ(choice.axes, (std::vector<Axes>{none_, x_, none_}));
  EXPECT_EQ(choice.bytes, Bytes(192));  // 3/4 of 256
}

TEST_F(FactorChoiceTest, AgreedSumsStayEvenIfAGatherMovesLess) {
  // Operands of 32 x 4 x 4 bytes = 512, gathered: 2 x 3 x 128 = 768. All-reduce of 32 x 32 x 4
  // bytes: 6144, but a quarter of the work.
  const FactorChoice choice = Dot(32, 4, 32, Split({{}, x_}), Split({x_, {}}), Split({{}, {}}));
  EXPECT_EQ(choice.axes[1], x_);
  EXPECT_EQ(choice.bytes, Bytes(6144));
}

TEST_F(FactorChoiceTest, TheSmallerOperandIsGathered) {
  // Both rows of the left and columns of the right want X. Weights of 16 x 8: shards of
  // 128 bytes, three of which arrive.
  const FactorChoice choice = Dot(64, 16, 8, Split({x_, {}}), Split({{}, x_}), Split({x_, {}}));
  EXPECT_EQ(choice.axes, (std::vector<Axes>{x_, none_, none_}));
  EXPECT_EQ(choice.bytes, Bytes(384));
}

TEST_F(FactorChoiceTest, TwoAxesTwoFactors) {
  const FactorChoice choice = Dot(8, 16, 8, Split({x_, {}}), Split({{}, y_}), Split({x_, y_}));
  EXPECT_EQ(choice.axes, (std::vector<Axes>{x_, none_, y_}));
  EXPECT_EQ(choice.bytes, Bytes(0));
}

TEST_F(FactorChoiceTest, WithoutACombinerReductionsAreWhole) {
  const FactorChoice choice =
      Choose(Matmul(8, 16, 8), {F32({8, 16}), F32({16, 8})}, {Split({{}, x_}), Split({x_, {}})},
             F32({8, 8}), Split({{}, {}}));
  EXPECT_EQ(choice.axes[1], none_);
  // Rows over X: the left operand's 128 bytes move one link, three shards of 128 of the
  // right one arrive, and so do three of 64 of the result. Both gathered would be 768.
  EXPECT_EQ(choice.axes[0], x_);
  EXPECT_EQ(choice.bytes, Bytes(128 + 384 + 192));
}

TEST_F(FactorChoiceTest, AFactorAloneInItsDimensionMayBeUneven) {
  ShardingRule rule;
  rule.AddFactor(10);
  rule.operands = {{{0}}};
  rule.results = {{{0}}};
  const FactorChoice choice = Choose(rule, {F32({10})}, {Split({x_})}, F32({10}), Split({x_}));
  EXPECT_EQ(choice.axes[0], x_);
  EXPECT_EQ(choice.bytes, Bytes(0));
}

TEST_F(FactorChoiceTest, AFactorThatSharesItsDimensionMayNot) {
  // [6,4] -> [24]: two of six rows per device are no ceil(24 / 4) = 6 elements.
  ShardingRule rule;
  rule.AddFactor(6);
  rule.AddFactor(4);
  rule.operands = {{{0}, {1}}};
  rule.results = {{{0, 1}}};
  const FactorChoice choice =
      Choose(rule, {F32({6, 4})}, {Split({x_, {}})}, F32({24}), Split({{}}));
  EXPECT_EQ(choice.axes[0], none_);
  // Two rows of 16 bytes from three others.
  EXPECT_EQ(choice.bytes, Bytes(96));
}

TEST_F(FactorChoiceTest, PermutationFactorsAreSplitIfTheOpCan) {
  ShardingRule rule;
  rule.AddFactor(8, FactorKind::kPermutation);
  rule.operands = {{{0}}};
  rule.results = {{{0}}};
  const hlo::Shape shape = F32({8});
  // Gather 3 x 8 bytes, then slice.
  EXPECT_EQ(Choose(rule, {shape}, {Split({x_})}, shape, Split({x_})).bytes, Bytes(24));
  SplitRules splits;
  splits.own = [](const std::vector<Axes>& axes) -> std::optional<Bytes> {
    return Bytes(axes[0].empty() ? 0 : 8);
  };
  const FactorChoice own = Choose(rule, {shape}, {Split({x_})}, shape, Split({x_}), splits);
  EXPECT_EQ(own.axes[0], x_);
  EXPECT_EQ(own.bytes, Bytes(8));
  splits.own = [](const std::vector<Axes>& axes) -> std::optional<Bytes> {
    if (!axes[0].empty()) return std::nullopt;
    return Bytes(0);
  };
  EXPECT_EQ(Choose(rule, {shape}, {Split({x_})}, shape, Split({x_}), splits).axes[0], none_);
}

}  // namespace
}  // namespace tpusim::spmd
