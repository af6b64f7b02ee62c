#include "sim/results/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::HasSubstr;

Report SampleReport() {
  const Sample s = MakeSample();
  return *BuildReport(s.config, s.info, s.timeline, "f");
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(SummaryTest, Golden) { EXPECT_EQ(Summarize(SampleReport()), R"(GOLDEN)"); }

TEST(SummaryTest, StaysOnOneScreenWhateverTheProgram) {
  Report r = SampleReport();
  r.workload = std::string(200, 'w');
  r.device_order = std::string(200, 'o');
  for (int i = 0; i < 40; ++i) {
    r.ops.push_back(r.ops[0]);
    r.ops.back().name = std::string(90, 'n');
    r.ops.back().source = std::string(90, 's');
    r.collectives.push_back(r.collectives[0]);
    r.collectives.back().algorithm = std::string(90, 'a');
    r.assumptions.push_back(std::string(150, 'b'));
    r.warnings.push_back(std::string(150, 'c'));
  }
  const std::string text = Summarize(r);
  const std::vector<std::string> lines = LinesOf(text);
  EXPECT_EQ(lines.size(), static_cast<size_t>(kSummaryLines));
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), static_cast<size_t>(kSummaryColumns)) << line;
  }
  EXPECT_THAT(text, HasSubstr("operation (5 of 45)"));
  EXPECT_THAT(text, HasSubstr("collective (4 of 42)"));
  // Three lines are left for 41 warnings and 41 assumptions; two are shown.
  EXPECT_THAT(text, HasSubstr("... and 80 more assumptions or warnings in --report"));
}

TEST(SummaryTest, WithoutCollectivesOpsHaveTheRoom) {
  Report r = SampleReport();
  r.collectives.clear();
  while (r.ops.size() < 20) r.ops.push_back(r.ops[0]);
  const std::string text = Summarize(r);
  EXPECT_THAT(text, HasSubstr("operation (9 of 20)"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("expected")));
  EXPECT_LE(LinesOf(text).size(), static_cast<size_t>(kSummaryLines));
}

TEST(SummaryTest, HostAndDcnBoundsShowWhenThereAreAny) {
  Report r = SampleReport();
  EXPECT_THAT(Summarize(r), ::testing::Not(HasSubstr("host ")));
  r.bound.host = Microseconds(3);
  r.bound.dcn = Microseconds(4);
  EXPECT_THAT(Summarize(r), HasSubstr("ici 50.00 us, host 3.000 us, dcn 4.000 us"));
}

}  // namespace
}  // namespace tpusim::results
