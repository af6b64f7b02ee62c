// Every pass says what it did, on every example where it did something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/examples.h"
#include "workloads/compiler/session.h"
#include "workloads/hlo/io/import.h"
#include "workloads/passes/passes.h"

namespace tpusim::compiler {
namespace {

// Returns the options of a program: with passes of compiled modules, or all others.
CompileOptions Explained(bool compiled) {
  CompileOptions options;
  options.trip_counts = {{"*", 2}};
  options.verify_passes = false;
  for (const passes::Pass& pass : passes::AllPasses()) {
    const bool annotates = pass.phase == passes::Phase::kAnnotate;
    if (annotates || (pass.phase == passes::Phase::kRead) == compiled) {
      options.explain.emplace_back(pass.name);
    }
  }
  return options;
}

// Records of each run of a pass over a program.
void ForEachRun(const std::string& file,
                const std::function<void(const passes::PassRun& run)>& look) {
  auto imported = hlo::ImportFile(file);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto config = configs::LoadConfig(imported->workload.config(), {});
  ASSERT_TRUE(config.ok()) << config.status();
  const CompileOptions options = Explained(imported->compiled);
  const auto compiled = Compile(*std::move(imported), *config, options, Stage::kSchedule);
  ASSERT_TRUE(compiled.ok()) << file << Message(compiled.status());
  for (const passes::PassRun& run : compiled->pass_runs) {
    for (const Record& record : run.records) {
      EXPECT_EQ(record.pass, run.pass);
      // Sentences are whole, and say of what they are.
      const std::string text = ToString(record);
      EXPECT_FALSE(record.subject.empty()) << text;
      EXPECT_GT(text.size(), record.subject.size() + 8) << text;
    }
    look(run);
  }
}

TEST(Explain, EveryPassThatChangesSomethingSaysWhat) {
  std::map<std::string, int64_t> changes;
  std::set<std::string> kept;
  for (const std::string& file : workloads::Examples()) {
    ForEachRun(file, [&](const passes::PassRun& run) {
      int64_t changed = 0;
      for (const Record& record : run.records) {
        if (record.reason->action == Action::kChanged) ++changed;
        if (record.reason->action == Action::kKept) kept.insert(run.pass);
      }
      EXPECT_EQ(run.changed, changed > 0) << run.pass << " on " << file;
      changes[run.pass] += changed;
    });
  }
  int64_t passes_that_changed = 0;
  for (const auto& [pass, count] : changes) passes_that_changed += count > 0 ? 1 : 0;
  EXPECT_GE(passes_that_changed, 18);
  EXPECT_GT(changes["fusion"], 500);
  EXPECT_THAT(kept, ::testing::IsSupersetOf({"fusion", "layout", "rematerialize",
                                             "async-collectives", "demote-async"}));
}

TEST(Explain, PassesOfCompiledModulesSayWhatTheyRead) {
  const std::filesystem::path root =
      std::filesystem::path(workloads::Examples()[0]).parent_path().parent_path().parent_path();
  std::set<std::string> changed;
  for (const char* slice : {"v5e-4x2", "v7x-2x2x1"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(root / "tests" / "data" / "compiled" / slice)) {
      if (!file.path().string().ends_with(".pb.gz")) continue;
      ForEachRun(file.path().string(), [&](const passes::PassRun& run) {
        EXPECT_TRUE(!run.changed || !run.records.empty()) << run.pass << " on " << file.path();
        if (run.changed) changed.insert(run.pass);
      });
    }
  }
  EXPECT_THAT(changed, ::testing::IsSupersetOf({"flatten-fusions", "translate-calls",
                                                "unwrap-off-loads", "unwrap-reduce-scatters",
                                                "join-carried-collectives", "begin-prefetched"}));
}

}  // namespace
}  // namespace tpusim::compiler
