// A pass says that it changed the module exactly if it did, on every example.
#include <gtest/gtest.h>

#include <string>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/examples.h"
#include "workloads/compiler/optimize.h"
#include "workloads/compiler/session.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"

namespace tpusim::compiler {
namespace {

TEST(PassHonesty, ChangedMeansThatTheTextIsAnother) {
  int64_t runs = 0, changes = 0;
  for (const std::string& file : workloads::Examples()) {
    auto imported = hlo::ImportFile(file);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const auto config = configs::LoadConfig(imported->workload.config(), {});
    ASSERT_TRUE(config.ok()) << config.status();
    CompileOptions compile;
    compile.trip_counts = {{"*", 2}};
    OptimizeOptions options;
    options.trip_counts = compile.trip_counts;
    options.stated.partitions = imported->workload.num_partitions();
    auto compiled = Compile(*std::move(imported), *config, compile, Stage::kPartitioned);
    ASSERT_TRUE(compiled.ok()) << file << Message(compiled.status());
    std::string before = hlo::ToString(*compiled->module);
    options.pipeline.after_pass = [&](const passes::PassRun& run, const hlo::Module& module) {
      std::string after = hlo::ToString(module);
      EXPECT_EQ(run.changed, before != after) << run.pass << " on " << file;
      before = std::move(after);
      ++runs;
      changes += run.changed ? 1 : 0;
    };
    const auto done = Optimize(*compiled->module, *config, options);
    ASSERT_TRUE(done.ok()) << file << Message(done.status());
  }
  EXPECT_GT(changes, 100);
  EXPECT_GT(runs - changes, 100);
}

}  // namespace
}  // namespace tpusim::compiler
