// Every example's partitioned and optimised module as text and back.
#include <gtest/gtest.h>

#include <string>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/examples.h"
#include "workloads/compiler/session.h"
#include "workloads/hlo/io/literal_text.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::compiler {
namespace {

void ExpectSameAfterParsing(const hlo::Module& module, const std::string& file) {
  const hlo::PrintOptions whole = {.large_constants = true};
  const std::string text = hlo::ToString(module, whole);
  const auto parsed = hlo::ParseHloText(text);
  ASSERT_TRUE(parsed.ok()) << file << ": " << Message(parsed.status());
  EXPECT_EQ(hlo::ToString(*parsed->module, whole), text) << file;
  EXPECT_TRUE(hlo::CheckConstantsHaveValues(*parsed->module).ok()) << file;
}

TEST(TextRoundTrip, OfEveryExample) {
  for (const std::string& file : workloads::Examples()) {
    for (const Stage stage : {Stage::kPartitioned, Stage::kOptimized, Stage::kSchedule}) {
      auto imported = hlo::ImportFile(file);
      ASSERT_TRUE(imported.ok()) << imported.status();
      const auto config = configs::LoadConfig(imported->workload.config(), {});
      ASSERT_TRUE(config.ok()) << config.status();
      CompileOptions options;
      options.trip_counts = {{"*", 2}};
      const auto compiled = Compile(*std::move(imported), *config, options, stage);
      ASSERT_TRUE(compiled.ok()) << file << Message(compiled.status());
      ExpectSameAfterParsing(*compiled->module, file);
    }
  }
}

}  // namespace
}  // namespace tpusim::compiler
