// Facts of a module that are kept between passes equal those of a fresh analysis, after every pass
// on every example; and the memory plan of every example is right, whatever the chip.
#include <gtest/gtest.h>

#include <string>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/buffers/checked_plan.h"
#include "tests/workloads/examples.h"
#include "workloads/compiler/session.h"
#include "workloads/compiler/stages.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/io/import.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/pipeline/pipeline.h"

namespace tpusim::compiler {
namespace {

std::unique_ptr<hlo::Module> CompiledUntil(Stage until, const std::string& file,
                                           const std::string& slice) {
  auto imported = hlo::ImportFile(file);
  if (!imported.ok()) return nullptr;
  const auto config = configs::LoadConfig(slice.empty() ? imported->workload.config() : slice, {});
  CompileOptions options;
  options.trip_counts = {{"*", 2}};
  auto result = Compile(*std::move(imported), *config, options, until);
  EXPECT_TRUE(result.ok()) << file << " on " << slice << ": " << Message(result.status());
  if (!result.ok()) return nullptr;
  return std::move(result->module);
}

void ExpectEqual(const hlo::AliasAnalysis& kept, const hlo::AliasAnalysis& fresh) {
  ASSERT_EQ(kept.arrays().size(), fresh.arrays().size());
  for (size_t a = 0; a < kept.arrays().size(); ++a) {
    const hlo::ArrayValue &one = kept.arrays()[a], &other = fresh.arrays()[a];
    EXPECT_EQ(one.made_by, other.made_by);
    EXPECT_EQ(one.leaf, other.leaf);
    EXPECT_EQ(one.takes, other.takes);
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.readers, other.readers);
    EXPECT_EQ(one.lives_out, other.lives_out);
  }
}

TEST(ModuleFacts, WhatIsKeptIsTrueAfterEveryPass) {
  int64_t kept_plans = 0;
  for (const std::string& file : workloads::Examples()) {
    const std::unique_ptr<hlo::Module> module = CompiledUntil(Stage::kPartitioned, file, "");
    ASSERT_NE(module, nullptr) << file;
    const auto workload = hlo::ImportFile(file)->workload;
    const auto config = configs::LoadConfig(workload.config(), {}).value();
    const target::Target target(config);
    const auto placement = PlacePartitions(workload, {}, workload.num_partitions(), config, "ids");
    ASSERT_TRUE(placement.ok()) << file << placement.status();
    cost::ChipCostModel costs(target, placement->device_of_partition, {},
                              [](const hlo::Instruction&) { return 2; });
    passes::PassContext context(target, costs);
    passes::Statements stated;
    stated.partitions = workload.num_partitions();
    context.stated = &stated;
    const buffers::MemoryPlan* plan_before = nullptr;
    passes::PipelineOptions options;
    options.after_pass = [&](const passes::PassRun& run, const hlo::Module& now) {
      SCOPED_TRACE(file + " after " + run.pass);
      const hlo::CallGraph fresh(now);
      EXPECT_EQ(context.facts->CallsOf(now).control(), fresh.control());
      for (const hlo::Computation* c : fresh.control()) {
        EXPECT_EQ(context.facts->CallsOf(now).CallersOf(*c), fresh.CallersOf(*c));
        ExpectEqual(context.facts->Aliases().Of(*c), hlo::AliasAnalysis(*c));
      }
      if (now.entry()->schedule().empty()) return;
      const buffers::MemoryPlan& plan = context.facts->PlanOf(now, target);
      const buffers::MemoryPlan made = buffers::CheckedPlan(now, target);
      EXPECT_EQ(plan.peaks, made.peaks);
      EXPECT_EQ(plan.offsets, made.offsets);
      EXPECT_EQ(plan.live_at_peak, made.live_at_peak);
      kept_plans += &plan == plan_before && !run.changed ? 1 : 0;
      plan_before = &plan;
    };
    std::vector<passes::PassRun> runs;
    const auto done =
        passes::RunPipeline(passes::ParsePipeline("").value(), *module, context, options, runs);
    ASSERT_TRUE(done.ok()) << file << Message(done.status());
  }
  EXPECT_GT(kept_plans, 50);
}

TEST(MemoryPlans, OfEveryExampleAreRightOnEveryChip) {
  for (const char* slice : {"v4-4x8x8", "v5e-16x16", "v7x-4x4x8"}) {
    const configs::Config config = configs::LoadConfig(slice, {}).value();
    int planned = 0;
    for (const std::string& file : workloads::Examples()) {
      SCOPED_TRACE(file + std::string(" on ") + slice);
      const std::unique_ptr<hlo::Module> module = CompiledUntil(Stage::kSchedule, file, slice);
      ASSERT_NE(module, nullptr);
      buffers::CheckedPlan(*module, target::Target(config));
      ++planned;
    }
    EXPECT_GT(planned, 90);
  }
}

}  // namespace
}  // namespace tpusim::compiler
