// Stages of a compilation, one by one, and what a session keeps from one to the next.
#include "workloads/compiler/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"

namespace tpusim::compiler {
namespace {

using ::testing::HasSubstr;

hlo::ImportedWorkload TwoDots() {
  auto imported = hlo::Import(R"(HloModule step
ENTRY main {
  x = bf16[512,512]{1,0} parameter(0)
  w = bf16[512,512]{1,0} parameter(1)
  h = bf16[512,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = bf16[512,512]{1,0} dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)",
                              "step");
  EXPECT_TRUE(imported.ok()) << imported.status();
  return *std::move(imported);
}

configs::Config Slice(const std::vector<std::string>& overrides = {}) {
  return configs::LoadConfig("v5e-1x1", overrides).value();
}

ScheduledProgram Scheduled(Session& session, const configs::Config& slice,
                           NormalisedProgram program) {
  auto partitioned = session.Partition(std::move(program), {}, slice);
  EXPECT_TRUE(partitioned.ok()) << partitioned.status();
  auto simplified = std::move(*partitioned).Simplify();
  EXPECT_TRUE(simplified.ok()) << simplified.status();
  auto kernels = std::move(*simplified).BuildKernels();
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  auto scheduled = std::move(*kernels).Schedule();
  EXPECT_TRUE(scheduled.ok()) << scheduled.status();
  return *std::move(scheduled);
}

ScheduledProgram Scheduled(Session& session, const configs::Config& slice) {
  auto program = Normalise(TwoDots());
  EXPECT_TRUE(program.ok()) << program.status();
  return Scheduled(session, slice, *std::move(program));
}

TEST(Session, StagesMakeWhatOneCompilationMakes) {
  Session session;
  auto program = Normalise(TwoDots());
  ASSERT_TRUE(program.ok()) << program.status();
  auto partitioned = session.Partition(*std::move(program), {}, Slice());
  ASSERT_TRUE(partitioned.ok()) << partitioned.status();
  EXPECT_EQ(partitioned->result().device_of_partition, std::vector<int64_t>{0});
  EXPECT_TRUE(partitioned->result().pass_runs.empty());
  auto simplified = std::move(*partitioned).Simplify();
  ASSERT_TRUE(simplified.ok()) << simplified.status();
  const auto has_run = [](const CompileStage& stage, const std::string& pass) {
    return std::ranges::any_of(stage.result().pass_runs,
                               [&](const passes::PassRun& run) { return run.pass == pass; });
  };
  EXPECT_TRUE(has_run(*simplified, "simplify"));
  EXPECT_FALSE(has_run(*simplified, "layout"));
  auto kernels = std::move(*simplified).BuildKernels();
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  EXPECT_TRUE(has_run(*kernels, "layout"));
  EXPECT_TRUE(kernels->module().entry()->schedule().empty());
  auto scheduled = std::move(*kernels).Schedule();
  ASSERT_TRUE(scheduled.ok()) << scheduled.status();
  EXPECT_FALSE(scheduled->module().entry()->schedule().empty());
  EXPECT_GT(scheduled->memory().PeakOf(hlo::kHbmSpace), Bytes(0));
  const auto lowered = std::move(*scheduled).Lower();
  ASSERT_TRUE(lowered.ok()) << lowered.status();

  const auto at_once = Compile(TwoDots(), Slice(), {});
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  EXPECT_EQ(isa::Disassemble(lowered->program), isa::Disassemble(at_once->program));
  const auto until = Compile(TwoDots(), Slice(), {}, Stage::kOptimized);
  ASSERT_TRUE(until.ok()) << until.status();
  EXPECT_TRUE(until->module->entry()->schedule().empty());
  EXPECT_EQ(until->program.devices(), 0);
}

TEST(Session, KernelsAreSearchedForOnce) {
  Session session;
  Scheduled(session, Slice());
  const int64_t searches = session.caches().KernelSearches();
  EXPECT_GT(searches, 0);
  Scheduled(session, Slice());
  Scheduled(session, configs::LoadConfig("v5e-4x2", {}).value());  // of the same chip
  EXPECT_EQ(session.caches().KernelSearches(), searches);
  EXPECT_EQ(session.caches().OfChip(Slice()).size(), 2u);
  Scheduled(session, configs::LoadConfig("v6e-1x1", {}).value());
  EXPECT_GT(session.caches().KernelSearches(), searches);
  session.caches().Clear();
  EXPECT_EQ(session.caches().KernelSearches(), 0);
}

// An all-reduce of 16 MiB: nearly all of its time is bytes over links, so that links of twice the
// rate take about half of it.
TEST(Session, AScheduledProgramIsLoweredForOtherSpeeds) {
  auto all_reduce = hlo::Import(R"(HloModule step, num_partitions=8
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[4194304]{0} parameter(0)
  ROOT y = f32[4194304]{0} all-reduce(x), replica_groups={{0,1,2,3,4,5,6,7}}, channel_id=1, use_global_device_ids=true, to_apply=add
}
)",
                                      "step");
  ASSERT_TRUE(all_reduce.ok()) << all_reduce.status();
  const auto slice = [](const std::vector<std::string>& overrides) {
    return configs::LoadConfig("v5e-4x2", overrides).value();
  };
  all_reduce->partitioned = true;
  auto program = Normalise(*std::move(all_reduce));
  ASSERT_TRUE(program.ok()) << program.status();
  Session session;
  const ScheduledProgram scheduled = Scheduled(session, slice({}), *std::move(program));
  const auto as_it_is = scheduled.LowerFor(slice({}));
  const auto faster = scheduled.LowerFor(slice({"ici.link_bytes_per_second=2x"}));
  ASSERT_TRUE(as_it_is.ok() && faster.ok());
  EXPECT_EQ(as_it_is->info.peak.hbm(), faster->info.peak.hbm());
  ASSERT_EQ(as_it_is->info.collectives.size(), 1u);
  ASSERT_EQ(faster->info.collectives.size(), 1u);
  const double ratio = ToSeconds(faster->info.collectives[0].expected) /
                       ToSeconds(as_it_is->info.collectives[0].expected);
  EXPECT_NEAR(ratio, 0.5, 0.05);
}

TEST(Session, WhatDoesNotFitIsScheduledAndNotLowered) {
  Session session;
  const configs::Config small = Slice({"chip.hbm.bytes=64KiB", "chip.hbm.reserved_bytes=0"});
  ScheduledProgram scheduled = Scheduled(session, small);
  EXPECT_FALSE(scheduled.CheckFits().ok());
  EXPECT_EQ(scheduled.LowerFor(Slice()).status(), scheduled.CheckFits());
  EXPECT_TRUE(std::move(scheduled).MakeExecutable().ok());
}

TEST(Session, WhatCamePartitionedHasNoShardingsToState) {
  const auto partitioned = [] {
    hlo::ImportedWorkload imported = TwoDots();
    imported.partitioned = true;
    imported.num_partitions = 1;
    return imported;
  };
  EXPECT_THAT(Message(NamesText(partitioned()).status()), HasSubstr("partitioned already"));
  auto program = Normalise(partitioned());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(Message(DecisionsText(*program).status()), HasSubstr("no shardings to show"));
  EXPECT_THAT(Message(State(CopyOf(*program), {}).status()), HasSubstr("no shardings to show"));
  Session session;
  CompileOptions options;
  options.mesh = {{"x", 1}};
  EXPECT_THAT(Message(session.Partition(CopyOf(*program), options, Slice()).status()),
              HasSubstr("--mesh: the module is partitioned already"));
  options = {};
  options.kept = {"x"};
  EXPECT_THAT(Message(session.Partition(CopyOf(*program), options, Slice()).status()),
              HasSubstr("--keep-argument: the module is partitioned already"));
  EXPECT_TRUE(session.Partition(CopyOf(*program), {}, Slice()).ok());
}

TEST(Session, MorePartitionsThanDevicesAreRefusedFirst) {
  CompileOptions options;
  options.mesh = {{"x", int64_t{1} << 40}};
  Session session;
  auto program = Normalise(TwoDots());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(Message(session.Partition(*std::move(program), options, Slice()).status()),
              HasSubstr("1099511627776 partitions"));
}

}  // namespace
}  // namespace tpusim::compiler
