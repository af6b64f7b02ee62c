// Sharding rules that users give their custom calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StatedRuleTest : public ::testing::Test {
 protected:
  // f32[64,32], f32[32,16] -> f32[64,16]
  absl::StatusOr<ShardingRule> Rule(const std::string& text) {
    hlo::TestModule m;
    Instruction* a = m.Param(F32({64, 32}));
    Instruction* b = m.Param(F32({32, 16}));
    Instruction* call = m.Add(Opcode::kCustomCall, F32({64, 16}), {a, b});
    call->mutable_attrs().set_custom_call_target("mine");
    hlo::SetFrontendAttribute(call, rules::kShardingRule, text);
    return RuleFor(*call);
  }
  std::string Error(const std::string& text) {
    const auto rule = Rule(text);
    return rule.ok() ? "no error" : std::string(rule.status().message());
  }
};

TEST_F(StatedRuleTest, PassThroughAndReplicated) {
  const auto rule = Rule(
      "#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=64, j=16, k=32} need_replication={k} "
      "blocked_propagation={j}, custom>");
  ASSERT_TRUE(rule.ok()) << rule.status();
  ASSERT_EQ(rule->factors.size(), 3u);  // i, j, k
  EXPECT_EQ(rule->factors[0], (Factor{64, FactorKind::kPassThrough, false}));
  EXPECT_EQ(rule->factors[1], (Factor{16, FactorKind::kPassThrough, true}));
  EXPECT_EQ(rule->factors[2], (Factor{32, FactorKind::kNeedReplication, false}));
  EXPECT_THAT(rule->operands[0], ElementsAre(ElementsAre(0), ElementsAre(2)));
  EXPECT_THAT(rule->operands[1], ElementsAre(ElementsAre(2), ElementsAre(1)));
  EXPECT_THAT(rule->results[0], ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST_F(StatedRuleTest, DimensionsOfSeveralFactors) {
  const auto rule =
      Rule("#sdy.op_sharding_rule<([iz_1, k], [k, j])->([iz_1, j]) {i=8, j=16, k=32, z_1=8}>");
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_THAT(rule->operands[0], ElementsAre(ElementsAre(0, 3), ElementsAre(2)));
  // No result has it, and nothing says that it is summed.
  EXPECT_EQ(rule->factors[2].kind, FactorKind::kNeedReplication);
  EXPECT_EQ(rule->factors[3].kind, FactorKind::kPassThrough);
  // A factor of size 1 is none, and a dimension may have none at all.
  const auto one = Rule("#sdy.op_sharding_rule<([il, k], [k, {}])->([il, {}]) {i=64, k=32, l=1}>");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->operands[0], ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(one->results[0], ElementsAre(ElementsAre(0), IsEmpty()));
}

TEST_F(StatedRuleTest, WhatCannotBePartitioned) {
  const std::string error =
      Error("#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=64, j=16, k=32} reduction={k}>");
  EXPECT_THAT(error, HasSubstr("has the reduction factor 'k'"));
  EXPECT_THAT(error, HasSubstr("is not in the module"));
  EXPECT_THAT(Error("#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=64, j=16, k=32} "
                    "permutation={i}, custom>"),
              HasSubstr("has the permutation factor 'i'"));
}

TEST_F(StatedRuleTest, WhatDoesNotFit) {
  EXPECT_THAT(Error("#sdy.op_sharding_rule<([i, k])->([i, j]) {i=64, j=16, k=32}>"),
              HasSubstr("it is of 1 operands and 1 results, the call has 2 and 1"));
  EXPECT_THAT(Error("#sdy.op_sharding_rule<([i], [k, j])->([i, j]) {i=64, j=16, k=32}>"),
              HasSubstr("value 0 has 2 dimensions, not 1"));
  EXPECT_THAT(Error("#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=32, j=16, k=32}>"),
              HasSubstr("dimension 0 of value 0 has size 64, its factors 32"));
  EXPECT_THAT(Error("#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=64, j=16}>"),
              HasSubstr("no size of 'k'"));
  EXPECT_THAT(Error("i k, k j -> i j"), HasSubstr("'#sdy.op_sharding_rule<' is missing"));
  EXPECT_THAT(Error(""), HasSubstr("is missing"));
  EXPECT_THAT(Error("#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i="),
              HasSubstr("a size is missing"));
}

}  // namespace
}  // namespace tpusim::sharding
