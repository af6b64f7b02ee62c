#include "workloads/sharding/stated_donations.h"

#include "sharding_testing.h"
#include "workloads/sharding/normalise.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Opcode;
using ::testing::HasSubstr;

// (negate(a), negate(b)) of a, b and c, all [8,16]; a and c are split by x, b is not.
struct ThreeArguments {
  ThreeArguments() {
    a = m.Argument(F32({8, 16}), "[{\"x\"}, {}]");
    b = m.Argument(F32({8, 16}), "[{}, {}]");
    m.Argument(F32({8, 16}), "[{\"x\"}, {}]");
    hlo::Instruction* first = m.Marker("xla.sdy.FuncResultSharding", F32({8, 16}),
                                       {m.Add(Opcode::kNegate, F32({8, 16}), {a})});
    ShardedTestModule::Say(first, "[{\"x\"}, {}]");
    hlo::Instruction* second = m.Marker("xla.sdy.FuncResultSharding", F32({8, 16}),
                                        {m.Add(Opcode::kNegate, F32({8, 16}), {b})});
    ShardedTestModule::Say(second, "[{}, {}]");
    const hlo::Shape both = hlo::MakeTupleShape({F32({8, 16}), F32({8, 16})});
    m.module().entry()->set_root(m.Add(Opcode::kTuple, both, {first, second}));
  }
  absl::StatusOr<ShardedModule> With(std::vector<std::string> donated,
                                     std::vector<std::string> kept = {}) {
    PropagationOptions options;
    options.donated = std::move(donated);
    options.kept = std::move(kept);
    return ShardModule(m.module(), 0, options);
  }
  ShardedTestModule m;
  hlo::Instruction *a = nullptr, *b = nullptr;
};

std::string AliasesOf(const absl::StatusOr<ShardedModule>& sharded) {
  if (!sharded.ok()) return Message(sharded.status());
  std::string text;
  for (const auto& entry : sharded->module->fields().input_output_alias().entries()) {
    text += fmt::format("{}<-{} ", entry.output_shape_index(0), entry.parameter_number());
  }
  return text;
}

TEST(StatedDonations, ResultsOfTheSameSharding) {
  ThreeArguments t;
  EXPECT_EQ(AliasesOf(t.With({})), "");
  EXPECT_EQ(AliasesOf(t.With({t.b->name()})), "1<-1 ");
  // No result is left for c.
  EXPECT_EQ(AliasesOf(t.With({"*"})), "0<-0 1<-1 ");
}

TEST(StatedDonations, WhatNoResultIsLeftForIsRefused) {
  ThreeArguments t;
  const std::string c = t.m.module().entry()->parameters()[2]->name();
  EXPECT_EQ(AliasesOf(t.With({c})), "0<-2 ");
  EXPECT_THAT(AliasesOf(t.With({t.a->name(), c})), HasSubstr("no result is left that"));
  EXPECT_THAT(AliasesOf(t.With({"none"})), HasSubstr("the program has no argument 'none'"));
  EXPECT_THAT(AliasesOf(t.With({}, {"none"})), HasSubstr("--keep-argument none"));
}

TEST(StatedDonations, ArgumentsAreKept) {
  ThreeArguments t;
  auto* entry = t.m.module().mutable_fields().mutable_input_output_alias()->add_entries();
  entry->add_output_shape_index(0);
  entry->set_parameter_number(0);
  EXPECT_EQ(AliasesOf(t.With({})), "0<-0 ");
  EXPECT_EQ(AliasesOf(t.With({}, {t.a->name()})), "");
  // Who keeps one argument may donate another one to its result.
  EXPECT_EQ(AliasesOf(t.With({t.m.module().entry()->parameters()[2]->name()}, {t.a->name()})),
            "0<-2 ");
}

}  // namespace
}  // namespace tpusim::sharding
