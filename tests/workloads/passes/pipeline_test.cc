#include "workloads/passes/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "configs/limit.h"
#include "configs/status_macros.h"
#include "tests/workloads/passes/fake_costs.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/passes/passes.h"

namespace tpusim::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) { return Message(ParsePipeline(text).status()); }

TEST(Passes, HaveNamesAndOptionsOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Pass& pass : AllPasses()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.description.empty()) << pass.name;
    EXPECT_EQ(FindPass(pass.name), &pass);
    std::set<std::string_view> options;
    for (const PassOption& option : pass.options) {
      EXPECT_TRUE(options.insert(option.name).second) << pass.name << " " << option.name;
    }
  }
  EXPECT_TRUE(ParsePipeline(DefaultPipeline()).ok());
}

TEST(PipelineText, StepsHaveOptionsAndGroups) {
  const auto pipeline =
      ParsePipeline("simplify, fixpoint(layout,simplify),async-collectives{permutes=off}");
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  ASSERT_EQ(pipeline->size(), 3u);
  EXPECT_EQ((*pipeline)[0].pass, FindPass("simplify"));
  EXPECT_EQ((*pipeline)[1].pass, nullptr);
  EXPECT_THAT(NamesOf((*pipeline)[1].group), ElementsAre("layout", "simplify"));
  EXPECT_THAT((*pipeline)[2].options,
              ElementsAre(std::pair("all-gathers", "on"), std::pair("offload", "on"),
                          std::pair("permutes", "off")));
  EXPECT_THAT(NamesOf(*pipeline), ElementsAre("simplify", "layout", "async-collectives"));
}

TEST(PipelineText, ThingsLeftOutAreOfTheDefault) {
  const auto all = ParsePipeline("");
  const auto some = ParsePipeline("-fusion,-memory-space-assignment");
  ASSERT_TRUE(all.ok() && some.ok());
  std::vector<std::string> expected = NamesOf(*all);
  std::erase(expected, "fusion");
  std::erase(expected, "memory-space-assignment");
  EXPECT_EQ(NamesOf(*some), expected);
}

TEST(PipelineText, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(ErrorOf("simplify,fuzion"), HasSubstr("character 10: there is no pass 'fuzion'"));
  EXPECT_THAT(ErrorOf("fusion{depth=3}"), HasSubstr("character 8: fusion has no option 'depth'"));
  EXPECT_THAT(ErrorOf("async-collectives{permutes=maybe}"), HasSubstr("on, off"));
  EXPECT_THAT(ErrorOf("fixpoint(simplify"), HasSubstr("character 18: the group does not end"));
  EXPECT_THAT(ErrorOf("fixpoint(fixpoint(simplify))"), HasSubstr("a group inside of a group"));
  EXPECT_THAT(ErrorOf("simplify fusion"), HasSubstr("character 10: a comma is missing here"));
  EXPECT_THAT(ErrorOf("schedule,fusion"), HasSubstr("fusion cannot come after schedule"));
  EXPECT_THAT(ErrorOf("-fusion,layout"), HasSubstr("character 9"));
}

// Passes for the runner. The first takes a tanh away per run.
absl::StatusOr<bool> RemoveOneTanh(hlo::Module& module, const PassContext&, const OptionValues&) {
  for (Instruction* i : module.entry()->PostOrder()) {
    if (i->opcode() != Opcode::kTanh) continue;
    i->ReplaceAllUsesWith(i->operand(0));
    module.entry()->Remove(i);
    return true;
  }
  return false;
}
absl::StatusOr<bool> BreakShapes(hlo::Module& module, const PassContext&, const OptionValues&) {
  module.entry()->root()->set_shape(hlo::MakeShape(PrimitiveType::kF32, {7}));
  return true;
}

SmallModule& Chain(SmallModule& m) {
  Instruction* x = m.Parameter({8});
  for (int n = 0; n < 3; ++n) x = m.Add(Opcode::kTanh, {8}, {x});
  m.Return({x});
  return m;
}

TEST(Pipeline, AGroupEndsWhenARoundChangesNothing) {
  SmallModule m;
  Chain(m);
  const Pass pass = {"remove", "", Phase::kOptimize, RemoveOneTanh};
  PipelineStep group;
  group.group = {{&pass, {}, {}}};
  std::vector<PassRun> runs;
  const auto changed = RunPipeline({group}, m.module(), m.context(), {}, runs);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(*changed);
  // Three rounds that change something, one that does not.
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0].before, 5);
  EXPECT_EQ(runs[0].after, 4);
  EXPECT_TRUE(runs[2].changed);
  EXPECT_FALSE(runs[3].changed);
  const std::string table = ToString(runs);
  EXPECT_THAT(table, HasSubstr("remove"));
  EXPECT_THAT(table, HasSubstr("-3"));
}

// Three runs remove something; what one removed is freed before the next.
TEST(Pipeline, WhatAPassRemovedIsFreedBehindIt) {
  SmallModule m;
  Chain(m);
  const Pass pass = {"remove", "", Phase::kOptimize, RemoveOneTanh};
  PipelineOptions options;
  int64_t runs_seen = 0;
  options.after_pass = [&](const PassRun&, const hlo::Module& module) {
    ++runs_seen;
    EXPECT_EQ(module.num_removed(), 0);
  };
  std::vector<PassRun> runs;
  const PipelineStep step = {&pass, {}, {}};
  ASSERT_TRUE(RunPipeline({step, step, step}, m.module(), m.context(), options, runs).ok());
  EXPECT_EQ(runs_seen, 3);
  EXPECT_TRUE(runs[2].changed);
  EXPECT_EQ(m.Find(Opcode::kTanh).size(), 0u);
}

// A module that a reading pass makes wrong was wrong in the file.
TEST(Pipeline, AModuleThatCannotBeReadIsTheUsers) {
  const Pass pass = {"break", "", Phase::kRead, BreakShapes};
  SmallModule m;
  Chain(m);
  std::vector<PassRun> runs;
  const PipelineOptions options;
  const auto changed = RunPipeline({{&pass, {}, {}}}, m.module(), m.context(), options, runs);
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(changed.status()), HasSubstr("none that the TPU compiler writes: pass"));
}

TEST(Pipeline, APassThatBreaksTheModuleIsNamed) {
  const Pass pass = {"break", "", Phase::kOptimize, BreakShapes};
  for (const bool verify : {true, false}) {
    SmallModule m;
    Chain(m);
    std::vector<PassRun> runs;
    PipelineOptions options;
    options.verify = verify;
    const auto changed = RunPipeline({{&pass, {}, {}}}, m.module(), m.context(), options, runs);
    EXPECT_EQ(changed.ok(), !verify);
    if (!verify) continue;
    EXPECT_EQ(changed.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(Message(changed.status()), HasSubstr("wrong after pass break"));
  }
}

absl::StatusOr<bool> AppendTanh(hlo::Module& module, const PassContext&, const OptionValues&) {
  hlo::Computation* entry = module.entry();
  std::vector<Instruction*> order = entry->schedule();
  order.push_back(entry->Add(Opcode::kTanh, entry->root()->shape(), {entry->root()}));
  entry->set_root(order.back());
  entry->set_schedule(std::move(order));
  return true;
}

TEST(Pipeline, APassThatKeepsNoOrderDropsItWithWhatItChanges) {
  const Pass remove = {"remove", "", Phase::kOptimize, RemoveOneTanh};
  const Pass append = {"append", "", Phase::kSchedule, AppendTanh};
  SmallModule m;
  Instruction* x = m.Parameter({8});
  Instruction* tanh = m.Add(Opcode::kTanh, {8}, {x});
  m.entry().set_root(tanh);
  m.entry().set_schedule({x, tanh});
  std::vector<PassRun> runs;
  const auto run = [&](const Pass& pass) {
    const auto changed = RunPipeline({{&pass, {}, {}}}, m.module(), m.context(), {}, runs);
    EXPECT_TRUE(changed.ok()) << changed.status();
    return m.entry().schedule();
  };
  // One of the passes that come after `schedule` keeps the order itself.
  const std::vector<Instruction*> kept = run(append);
  EXPECT_THAT(kept, ElementsAre(x, tanh, m.entry().root()));
  EXPECT_FALSE(runs.back().dropped_order);
  // Two changes: the order goes with the first. A run that changes nothing drops none.
  EXPECT_TRUE(run(remove).empty());
  EXPECT_TRUE(runs.back().dropped_order);
  EXPECT_TRUE(run(remove).empty());
  EXPECT_TRUE(runs.back().changed);
  EXPECT_FALSE(runs.back().dropped_order);
  m.entry().set_schedule({x});
  EXPECT_THAT(run(remove), ElementsAre(x));
  EXPECT_FALSE(runs.back().changed);
  EXPECT_FALSE(runs.back().dropped_order);
}

TEST(Pipeline, OptionsReachTheirPass) {
  for (const bool on : {true, false}) {
    SmallModule m;
    m.Return({m.Add(Opcode::kCollectivePermute, {8}, {m.Parameter({8})})});
    const auto pipeline =
        ParsePipeline(on ? "async-collectives" : "async-collectives{permutes=off}");
    ASSERT_TRUE(pipeline.ok());
    std::vector<PassRun> runs;
    const auto changed = RunPipeline(*pipeline, m.module(), m.context(), {}, runs);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(*changed, on);
    EXPECT_EQ(m.Find(Opcode::kCollectivePermuteStart).size(), on ? 1u : 0u);
  }
}

// The records of limits that a pass reached on the text, with some limits lower than they are.
std::string LimitsOf(std::string_view pass, std::string_view text,
                     std::initializer_list<std::pair<std::string_view, int64_t>> limits) {
  const configs::Config config = configs::LoadConfig("v5e-2x2", {}).value();
  const target::Target target(config);
  FakeCosts costs;
  costs.machine = &target;
  const std::unique_ptr<hlo::Module> module = std::move(hlo::ParseHloText(text).value().module);
  const LimitScope scope(limits);
  std::vector<PassRun> runs;
  const absl::StatusOr<bool> changed =
      RunPipeline(ParsePipeline(pass).value(), *module, {target, costs}, {}, runs);
  EXPECT_TRUE(changed.ok()) << changed.status();
  std::string lines;
  for (const Record& record : LimitsReached(runs)) {
    EXPECT_EQ(record.reason, &kLimitReached);
    lines += std::string(record.pass) + ": " + ToString(record) + "\n";
  }
  return lines;
}

TEST(Limits, ThoseThatWereReachedAreRecords) {
  // Every round takes one of four transposes that undo each other.
  constexpr std::string_view kTurns = R"(HloModule m
ENTRY e {
  p = f32[8,16] parameter(0)
  a = f32[16,8] transpose(p), dimensions={1,0}
  b = f32[8,16] transpose(a), dimensions={1,0}
  c = f32[16,8] transpose(b), dimensions={1,0}
  ROOT d = f32[8,16] transpose(c), dimensions={1,0}
})";
  EXPECT_EQ(LimitsOf("simplify", kTurns, {}), "");
  EXPECT_EQ(LimitsOf("simplify", kTurns, {{"simplify.rounds", 1}}),
            "simplify: limit simplify.rounds of 1 reached: 2 rounds of rules left out\n");

  constexpr std::string_view kReaders = R"(HloModule m
ENTRY e {
  p = f32[512,512] parameter(0)
  s = f32[512,512] tanh(p)
  a = f32[512,512] negate(s)
  b = f32[512,512] cosine(s)
  c = f32[512,512] sine(s)
  ROOT r = (f32[512,512], f32[512,512], f32[512,512]) tuple(a, b, c)
})";
  EXPECT_EQ(LimitsOf("fusion{results=off}", kReaders, {}), "");
  EXPECT_EQ(LimitsOf("fusion{results=off}", kReaders, {{"fusion.consumers", 2}}),
            "fusion: limit fusion.consumers of 2 reached: 1 values left out\n");
}

TEST(Limits, OneRecordForAllRunsOfAPass) {
  std::vector<PassRun> runs(2);
  for (PassRun& run : runs) {
    run.pass = "fusion";
    Records(nullptr, &run.records).Limit("fusion.consumers", 64, "values", 3);
    run.records[0].pass = "fusion";
  }
  const std::vector<Record> all = LimitsReached(runs);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(ToString(all[0]), "limit fusion.consumers of 64 reached: 6 values left out");
  EXPECT_EQ(all[0].pass, "fusion");
}

TEST(PipelineTest, AnnotationsNameStagesThatExist) {
  std::set<std::string_view> stages = {"tpusim.export", "normalise", "propagate", "partition",
                                       "remat",         "cost",      "lowering",  "report",
                                       "-"};
  for (const Pass& pass : AllPasses()) stages.insert(pass.name);
  for (const hlo::AnnotationRow& row : hlo::AnnotationTable()) {
    for (const std::string_view list : {row.writer, row.readers, row.dropped_by}) {
      for (const std::string& stage :
           std::vector<std::string>(absl::StrSplit(std::string(list), ", "))) {
        EXPECT_TRUE(stages.contains(stage)) << row.name << " names " << stage;
      }
    }
  }
}

}  // namespace
}  // namespace tpusim::passes
