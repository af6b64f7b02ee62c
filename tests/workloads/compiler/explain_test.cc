// Every pass says what it did, on every example where it did something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/examples.h"
#include "workloads/compiler/compile.h"
#include "workloads/hlo/io/import.h"
#include "workloads/passes/passes.h"

namespace tpusim::compiler {
namespace {

TEST(Explain, EveryPassThatChangesSomethingSaysWhat) {
  CompileOptions options;
  options.trip_counts = {{"*", 2}};
  options.until = Stage::kSchedule;
  options.verify_passes = false;
  for (const passes::Pass& pass : passes::AllPasses()) options.explain.emplace_back(pass.name);
  std::map<std::string, int64_t> changes;
  std::set<std::string> kept;
  for (const std::string& file : workloads::Examples()) {
    auto imported = hlo::ImportFile(file);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const auto config = configs::LoadConfig(imported->workload.config(), {});
    ASSERT_TRUE(config.ok()) << config.status();
    const auto compiled = Compile(*std::move(imported), *config, options);
    ASSERT_TRUE(compiled.ok()) << file << Message(compiled.status());
    for (const passes::PassRun& run : compiled->pass_runs) {
      int64_t changed = 0;
      for (const Record& record : run.records) {
        EXPECT_EQ(record.pass, run.pass);
        // Sentences are whole, and say of what they are.
        const std::string text = ToString(record);
        EXPECT_FALSE(record.subject.empty()) << text;
        EXPECT_GT(text.size(), record.subject.size() + 8) << text;
        if (record.reason->action == Action::kChanged) ++changed;
        if (record.reason->action == Action::kKept) kept.insert(run.pass);
      }
      EXPECT_EQ(run.changed, changed > 0) << run.pass << " on " << file;
      changes[run.pass] += changed;
    }
  }
  int64_t passes_that_changed = 0;
  for (const auto& [pass, count] : changes) passes_that_changed += count > 0 ? 1 : 0;
  EXPECT_GE(passes_that_changed, 18);
  EXPECT_GT(changes["fusion"], 500);
  EXPECT_THAT(kept, ::testing::IsSupersetOf({"fusion", "layout", "rematerialize",
                                             "async-collectives", "demote-async"}));
}

}  // namespace
}  // namespace tpusim::compiler
