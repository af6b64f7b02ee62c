#include "sim/results/report/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(SummaryTest, Golden) {
  EXPECT_EQ(Summarize(SampleReport()),
            R"(workload       f on toy-2x1: 2 chips, 2 devices, 2 partitions
device order   partition i on device i
step time      100.0 us   MFU 60.0%   HFU 60.0%   6.001 GFLOP per device
validated      no: there is no independent measurement of an inference step on toy
lower bounds   compute 60.00 us, hbm 30.00 us, ici 50.00 us
bound by       compute (critical path: MXU 70.0%, ICI 18.0%, VPU 8.0%, latency 4.0%)
compute        78.00 us busy (78.0%): MXU 70.00 us, VPU 8.000 us
communication  20.00 us exposed (20.0%), 60.00 us hidden under compute
memory         peak 3.725 GiB of 14.90 GiB usable HBM (25.0%)

operation      category            count      time   step  source
fusion.3       convolution fusion      2  70.00 us  70.0%  f.py:12
all-gather.1   exposed all-gather      1  20.00 us  20.0%  f.py:10
loop_fusion.5  loop fusion             1  8.000 us   8.0%  f.py:14
while.2        while                   1  2.000 us   2.0%  f.py:11

collective                  count      bytes  simulated  expected     bound  exposed  algorithm
collective-permute-start.4      2  1.907 MiB   30.00 us  25.00 us  20.00 us     0.0%  one hop
all-gather.1                    1  1.907 MiB   20.00 us  19.00 us  10.00 us   100.0%  line over x
exposed        all-gather.1: 20.00 us, synchronous: toy has no asynchronous all-gathers
warning        f.py:10: involuntary all-gather
assumed        loop while.2 runs 2 times
)");
}

TEST(SummaryTest, UtilizationsAboveOneSayOfWhat) {
  Report r = SampleReport();
  r.mfu = r.hfu = 1.5;  // fp8 has twice the peak of bf16
  EXPECT_THAT(Summarize(r), HasSubstr("MFU 150.0%   HFU 150.0% of the bf16 peak   6.001 GFLOP"));
}

// The bound of 0.4 of 100 us is on the screen, whatever else is left out there.
TEST(SummaryTest, ApproximateStepsSayHowFarOffTheyMayBe) {
  Report r = SampleReport();
  EXPECT_THAT(Summarize(r), ::testing::Not(HasSubstr("exactness")));
  r.devices = 256;
  r.folding.is_approximate = true;
  r.folding.device_classes = 16;
  r.folding.error_bound = Picoseconds(400'000);
  EXPECT_THAT(Summarize(r), HasSubstr("exactness      within 0.4%: 16 classes stand for 256 devices"));
}

// 2 GB go out beside the main stream, which waits 4 of the 100 us for them.
TEST(SummaryTest, HostMemory) {
  Report r = SampleReport();
  OpReport copy;
  copy.category = "copy to host";
  copy.engine = "dma";
  copy.total = Microseconds(30);
  copy.hbm_bytes = Bytes(2'000'000'000);
  OpReport wait;
  wait.category = "wait for host";
  wait.engine = "host";
  wait.total = Microseconds(4);
  r.ops.insert(r.ops.end(), {copy, wait});
  EXPECT_THAT(Summarize(r),
              HasSubstr("\nhost memory    4.000 us exposed (4.0%), 1.863 GiB copied\n"));
}

TEST(SummaryTest, StaysOnOneScreenWhateverTheProgram) {
  Report r = SampleReport();
  r.workload = std::string(200, 'w');
  r.device_order = std::string(200, 'o');
  for (int i = 0; i < 40; ++i) {
    RollupRow row;
    row.category = "loop fusion";
    row.name = std::string(90, 'n');
    row.source = std::string(90, 's');
    r.rollups.Of(RollupBy::kOp).push_back(row);
    r.collectives.push_back(r.collectives[0]);
    r.collectives.back().algorithm = std::string(90, 'a');
    r.collectives.back().bytes = Bytes(1000 + i);  // Else they are one row.
    r.assumptions.push_back(std::string(150, 'b'));
    r.warnings.push_back(std::string(150, 'c'));
  }
  const std::string text = Summarize(r);
  const std::vector<std::string> lines = LinesOf(text);
  EXPECT_EQ(lines.size(), static_cast<size_t>(kSummaryLines));
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), static_cast<size_t>(kSummaryColumns)) << line;
  }
  EXPECT_THAT(text, HasSubstr("operation (4 of 44)"));
  EXPECT_THAT(text, HasSubstr("(40 others)"));
  EXPECT_THAT(text, HasSubstr("collective (3 of 42)"));
  // Two lines are left for 41 warnings and 41 assumptions; one is shown.
  EXPECT_THAT(text, HasSubstr("... and 81 more assumptions or warnings in --report"));
}

TEST(SummaryTest, NarrowTerminalsLoseNoFigure) {
  const std::string text = Summarize(SampleReport(), {.width = 60});
  for (const std::string& line : LinesOf(text)) EXPECT_LE(line.size(), 60u) << line;
  EXPECT_THAT(text, HasSubstr("lower bounds   compute 60.00 us, hbm 30.00 us, ici 50.00 us\n"));
  EXPECT_THAT(text, HasSubstr("bound by       compute (critical path: MXU 70.0%, ICI 18.0%,\n"
                              "               VPU 8.0%, latency 4.0%)\n"));
}

TEST(SummaryTest, WithoutCollectivesOpsHaveTheRoom) {
  Report r = SampleReport();
  r.collectives.clear();
  std::vector<RollupRow>& rows = r.rollups.Of(RollupBy::kOp);
  while (rows.size() < 21) rows.push_back(rows[0]);
  const std::string text = Summarize(r);
  EXPECT_THAT(text, HasSubstr("operation (9 of 21)"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("expected")));
  EXPECT_LE(LinesOf(text).size(), static_cast<size_t>(kSummaryLines));
}

TEST(SummaryTest, TopIsAsAskedFor) {
  Report r = SampleReport();
  std::vector<RollupRow>& rows = r.rollups.Of(RollupBy::kOp);
  while (rows.size() < 60) rows.push_back(rows[0]);
  EXPECT_THAT(Summarize(r, {.by = RollupBy::kOp, .top = 50}), HasSubstr("operation (50 of 60)"));
  const std::string by_scope = Summarize(r, {.by = RollupBy::kScope, .top = 2});
  EXPECT_THAT(by_scope, HasSubstr("\nscope in jit(f)      time   step"));
  EXPECT_THAT(by_scope, HasSubstr("\nlayer            92.00 us  92.0%"));
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
