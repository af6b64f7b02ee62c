#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/passes/schedule/schedule.h"

namespace tpusim::passes {
namespace {

using isa::WaitReason;

class WaitFactsTest : public ::testing::Test {
 protected:
  // Returns the fact of the collective of this name.
  WaitFact FactOf(std::string_view body, const std::string& name,
                  const std::string& slice = "v5e-2x2") {
    config_ = configs::LoadConfig(slice, {}).value();
    module_ = hlo::ParseHloText(
                  "HloModule m, is_scheduled=true\n"
                  "add {\n  lhs = f32[] parameter(0)\n  rhs = f32[] parameter(1)\n"
                  "  ROOT sum = f32[] add(lhs, rhs)\n}\nENTRY e {\n" +
                  std::string(body) + "\n}\n")
                  .value()
                  .module;
    const target::Target target(config_);
    for (const auto& [i, fact] : WaitFacts(*module_, target)) {
      if (i->name() == name) return fact;
    }
    ADD_FAILURE() << "no fact of " << name;
    return {};
  }
  configs::Config config_;
  std::unique_ptr<hlo::Module> module_;
};

constexpr std::string_view kBetween = R"(
  p = f32[64,512] parameter(0)
  a = f32[64,512] tanh(p)
  s = (f32[64,512], f32[64,512], u32[], u32[]) collective-permute-start(a), source_target_pairs={{0,1},{1,0}}
  b = f32[64,512] negate(p)
  d = f32[64,512] collective-permute-done(s)
  ROOT c = f32[64,512] add(d, b))";

TEST_F(WaitFactsTest, TightOnBothEndsIsADependency) {
  const WaitFact fact = FactOf(kBetween, "s");
  EXPECT_EQ(fact.reason, WaitReason::kDependency);
  EXPECT_EQ(fact.text, "a makes what it sends, c needs it");
}

TEST_F(WaitFactsTest, WhatIsIndependentAndElsewhereIsTheSchedulesDoing) {
  const WaitFact fact = FactOf(R"(
  p = f32[64,512] parameter(0)
  a = f32[64,512] tanh(p)
  s = (f32[64,512], f32[64,512], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1},{1,0}}
  b = f32[64,512] negate(p)
  d = f32[64,512] collective-permute-done(s)
  m = f32[64,512] multiply(a, b)
  ROOT c = f32[64,512] add(d, m))",
                               "s");
  EXPECT_EQ(fact.reason, WaitReason::kSchedule);
  EXPECT_EQ(fact.text, "a does not depend on it, but is before its start");
}

// One all-gather may be in flight: the second starts where the first is over, behind a
// product that does not depend on it.
TEST_F(WaitFactsTest, ALimitInFlightIsAResource) {
  const WaitFact fact = FactOf(R"(
  p = f32[64,512] parameter(0)
  q = f32[64,512] parameter(1)
  w = f32[512,512] parameter(2)
  s0 = (f32[64,512], f32[256,512]) all-gather-start(p), dimensions={0}, replica_groups={{0,1,2,3}}
  x = f32[64,512] dot(q, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g0 = f32[256,512] all-gather-done(s0)
  s1 = (f32[64,512], f32[256,512]) all-gather-start(q), dimensions={0}, replica_groups={{0,1,2,3}}
  y = f32[256,512] dot(g0, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g1 = f32[256,512] all-gather-done(s1)
  z = f32[256,512] add(y, g1)
  ROOT t = (f32[256,512], f32[64,512]) tuple(z, x))",
                               "s1");
  EXPECT_EQ(fact.reason, WaitReason::kResource);
  EXPECT_EQ(fact.text, "asynchronous all-gather limit: 1 in flight");
}

// The operation behind the done is the start of the next transfer, which needs it.
TEST_F(WaitFactsTest, AChainOfTransfersIsADependency) {
  const WaitFact fact = FactOf(R"(
  p = f32[64,512] parameter(0)
  s0 = (f32[64,512], f32[64,512], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1},{1,0}}
  d0 = f32[64,512] collective-permute-done(s0)
  s1 = (f32[64,512], f32[64,512], u32[], u32[]) collective-permute-start(d0), source_target_pairs={{0,1},{1,0}}
  b = f32[64,512] negate(p)
  d1 = f32[64,512] collective-permute-done(s1)
  ROOT c = f32[64,512] add(d1, b))",
                               "s0");
  EXPECT_EQ(fact.reason, WaitReason::kDependency);
  EXPECT_EQ(fact.text, "it starts where the computation does, s1 needs it");
}

TEST_F(WaitFactsTest, SynchronousOnesSayWhy) {
  constexpr std::string_view kAllReduce = R"(
  p = f32[64,512] parameter(0)
  ROOT r = f32[64,512] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=add)";
  constexpr std::string_view kGather = R"(
  p = f32[64,512] parameter(0)
  ROOT g = f32[256,512] all-gather(p), dimensions={0}, replica_groups={{0,1,2,3}})";
  const std::string demoted =
      std::string(kGather) + R"(, frontend_attributes={async_collective_name="s"})";
  EXPECT_EQ(FactOf(demoted, "g").text, "nothing covers it");
  EXPECT_EQ(FactOf(kAllReduce, "r").reason, WaitReason::kSynchronous);
  EXPECT_EQ(FactOf(kAllReduce, "r").text, "all-reduces are synchronous on TPUs by default");
  EXPECT_EQ(FactOf(kGather, "g", "v6e-2x2").text, "v6e has no asynchronous all-gathers");
  EXPECT_EQ(FactOf(kGather, "g").text, "no pass made it asynchronous (async-collectives)");
}

}  // namespace
}  // namespace tpusim::passes
