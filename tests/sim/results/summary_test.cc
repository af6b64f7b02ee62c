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

TEST(SummaryTest, Golden) {
  EXPECT_EQ(Summarize(SampleReport()),
            R"(workload       f on toy-2x1: 2 chips, 2 devices, 2 partitions
device order   partition i on device i
step time      100.0 us   MFU 60.0%   HFU 60.0%   6.001 GFLOP per device
lower bounds   compute 60.00 us, hbm 30.00 us, ici 50.00 us
bound by       compute (compute 78.0%, HBM 37.5%, exposed ICI 20.0%, other 2.0% of the step)
compute        78.00 us busy (78.0%): MXU 70.00 us, VPU 8.000 us
communication  20.00 us exposed (20.0%), 60.00 us hidden under compute
memory         peak 4.000 GB of 16.00 GB usable HBM (25.0%)

operation      category            count      time   step  source
fusion.3       convolution fusion      2  70.00 us  70.0%  f.py:12
loop_fusion.5  loop fusion             1  8.000 us   8.0%  f.py:14

collective                  count     bytes  simulated  expected     bound  exposed  why          algorithm
collective-permute-start.4      2  2.000 MB   30.00 us  25.00 us  20.00 us     0.0%  -            one hop
all-gather.1                    1  2.000 MB   20.00 us  19.00 us  10.00 us   100.0%  synchronous  line over x
warning        f.py:10: involuntary all-gather
assumed        loop while.2 runs 2 times
)");
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
              HasSubstr("\nhost memory    4.000 us exposed (4.0%), 2.000 GB copied\n"));
}

TEST(SummaryTest, StaysOnOneScreenWhateverTheProgram) {
  Report r = SampleReport();
  r.workload = std::string(200, 'w');
  r.device_order = std::string(200, 'o');
  for (int i = 0; i < 40; ++i) {
    r.ops.push_back(r.ops[0]);
    r.ops.back().engine = "tensor_core";
    r.ops.back().category = "loop fusion";
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
  EXPECT_THAT(text, HasSubstr("operation (5 of 42)"));
  EXPECT_THAT(text, HasSubstr("collective (4 of 42)"));
  // Three lines are left for 41 warnings and 41 assumptions; two are shown.
  EXPECT_THAT(text, HasSubstr("... and 80 more assumptions or warnings in --report"));
}

TEST(SummaryTest, WithoutCollectivesOpsHaveTheRoom) {
  Report r = SampleReport();
  r.collectives.clear();
  while (r.ops.size() < 21) r.ops.push_back(r.ops[1]);  // a loop and two collectives do not count
  const std::string text = Summarize(r);
  EXPECT_THAT(text, HasSubstr("operation (9 of 18)"));
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
