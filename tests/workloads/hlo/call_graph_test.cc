#include "workloads/hlo/analysis/call_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;

// A loop of three iterations whose body asks a conditional; the second branch calls `shared`, which
// the entry calls too. Reducers and fused computations do not count.
constexpr char kText[] = R"(HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
fused { a = f32[8] parameter(0)  ROOT n = f32[8] negate(a) }
shared { a = f32[8] parameter(0)  ROOT f = f32[8] fusion(a), kind=kLoop, calls=fused }
zero { ROOT a = f32[8] parameter(0) }
one { a = f32[8] parameter(0)  ROOT c = f32[8] call(a), to_apply=shared }
body {
  t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[8] get-tuple-element(t), index=1
  c = f32[8] conditional(i, x, x), branch_computations={zero, one}
  ROOT r = (s32[], f32[8]) tuple(i, c)
}
condition {
  t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ROOT p = pred[] compare(i, i), direction=LT
}
ENTRY e {
  x = f32[8] parameter(0)
  z = f32[] constant(0)
  w = f32[] reduce(x, z), dimensions={0}, to_apply=sum
  i = s32[] constant(0)
  y = f32[8] call(x), to_apply=shared
  t = (s32[], f32[8]) tuple(i, y)
  l = (s32[], f32[8]) while(t), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(l), index=1
})";

template <typename Things>
std::vector<std::string> Names(const Things& things) {
  std::vector<std::string> names;
  for (const auto* thing : things) names.push_back(thing->name());
  return names;
}

class CallGraphTest : public ::testing::Test {
 protected:
  const Computation& Named(const std::string& name) const {
    for (const Computation* c : module_->computations()) {
      if (c->name() == name) return *c;
    }
    ADD_FAILURE() << name;
    return *module_->entry();
  }

  const std::unique_ptr<Module> module_ = ParseHloText(kText).value().module;
  const CallGraph calls_{*module_};
};

TEST_F(CallGraphTest, WhatRunsAsControlFlow) {
  // One that is called from several depths comes behind all of its callers.
  EXPECT_THAT(Names(calls_.control()),
              ElementsAre("e", "body", "condition", "zero", "one", "shared"));
  EXPECT_EQ(Names(ControlComputations(*module_)), Names(calls_.control()));
  EXPECT_TRUE(calls_.IsControl(Named("zero")));
  EXPECT_FALSE(calls_.IsControl(Named("sum")));
  EXPECT_FALSE(calls_.IsControl(Named("fused")));
}

TEST_F(CallGraphTest, WhoCalls) {
  EXPECT_THAT(Names(calls_.CallersOf(Named("e"))), ElementsAre());
  EXPECT_THAT(Names(calls_.CallersOf(Named("shared"))), ElementsAre("y", "c"));
  EXPECT_THAT(Names(calls_.CallersOf(Named("condition"))), ElementsAre("l"));
  EXPECT_EQ(calls_.LoopOf(Named("body"))->name(), "l");
  EXPECT_EQ(calls_.LoopOf(Named("condition")), nullptr);
  EXPECT_EQ(calls_.LoopOf(Named("zero")), nullptr);
}

// `shared` runs once for the entry and, counting every branch as taken, three times in the loop.
TEST_F(CallGraphTest, HowOftenItRuns) {
  const auto three = [](const Instruction&) -> absl::StatusOr<int64_t> { return 3; };
  const auto executions = ExecutionsOf(calls_, three).value();
  EXPECT_EQ(executions.size(), 6U);
  EXPECT_EQ(executions.at(&Named("e")), 1);
  EXPECT_EQ(executions.at(&Named("body")), 3);
  EXPECT_EQ(executions.at(&Named("one")), 3);
  EXPECT_EQ(executions.at(&Named("shared")), 4);
  const auto fails = [](const Instruction& loop) -> absl::StatusOr<int64_t> {
    return UserError("no trip count of " + loop.name());
  };
  EXPECT_EQ(Message(ExecutionsOf(calls_, fails).status()), "no trip count of l");
}

}  // namespace
}  // namespace tpusim::hlo
