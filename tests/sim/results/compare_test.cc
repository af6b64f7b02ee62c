#include "sim/results/report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The sample without its all-gather: 20 us of exposed communication less.
Report WithoutGather() {
  Report r = SampleReport();
  r.workload = "g";
  r.step_time = Microseconds(80);
  r.exposed = Picoseconds(0);
  std::erase_if(r.collectives, [](const CollectiveReport& c) { return c.kind == "all-gather"; });
  return r;
}

Compared Column(Report report) {
  Compared column{report.workload, report.config, std::nullopt, ""};
  column.report = std::move(report);
  return column;
}

TEST(CompareTest, NamesTheCollectiveThatIsGone) {
  EXPECT_EQ(ExplainDifference("A", SampleReport(), "B", WithoutGather()),
            "B is 1.25x faster than A (-20.00 us): exposed communication -20.00 us "
            "(all-gather gone)");
}

TEST(CompareTest, AndTheOneThatIsNew) {
  EXPECT_EQ(ExplainDifference("B", WithoutGather(), "A", SampleReport()),
            "A is 1.25x slower than B (+20.00 us): exposed communication +20.00 us "
            "(new: all-gather)");
}

TEST(CompareTest, PartsAddUpToTheDifference) {
  const Report a = SampleReport();
  Report b = a;
  // 100 = 78 compute + 20 exposed + 2 rest becomes 93 = 60 + 5 + 28.
  b.step_time = Microseconds(93);
  b.compute_busy = Microseconds(60);
  b.flops = Flops(4'000'000'000);
  b.exposed = Microseconds(5);
  b.hidden = Microseconds(75);
  b.collectives[1].exposed = Microseconds(5);
  EXPECT_EQ(
      ExplainDifference("A", a, "B", b),
      "B is 1.08x faster than A (-7.000 us): waits for HBM, launches and latencies +26.00 us, "
      "compute -18.00 us (6.001 GFLOP -> 4.000 GFLOP), exposed communication -15.00 us "
      "(all-gather 20.00 us -> 5.000 us); hidden communication +15.00 us");
}

TEST(CompareTest, SmallPartsExplainNothing) {
  const Report a = SampleReport();
  Report b = a;
  b.step_time = Microseconds(120);
  b.exposed = Picoseconds(39'500'000);  // +19.5 us; the rest takes +0.5 us
  EXPECT_THAT(ExplainDifference("A", a, "B", b), Not(HasSubstr("latencies")));
}

TEST(CompareTest, EqualStepsSaySo) {
  EXPECT_EQ(ExplainDifference("A", SampleReport(), "B", SampleReport()), "B takes as long as A");
}

TEST(CompareTest, MemoryIsMentionedWhenItDiffers) {
  Report b = SampleReport();
  b.peak.hbm() = Bytes(3'000'000'000);
  EXPECT_EQ(ExplainDifference("A", SampleReport(), "B", b),
            "B takes as long as A; peak HBM 3.725 GiB -> 2.794 GiB");
}

TEST(CompareTest, TableHasAColumnPerReportAndALinePerDifference) {
  const std::string text =
      Compare({Column(SampleReport()), Column(WithoutGather()), Column(SampleReport())});
  EXPECT_THAT(text, HasSubstr("workload                        f          g          f\n"));
  EXPECT_THAT(text, HasSubstr("step time                100.0 us   80.00 us   100.0 us\n"));
  EXPECT_THAT(text, HasSubstr("speed                       1.00x      1.25x      1.00x\n"));
  EXPECT_THAT(text, HasSubstr("rest (waits, launches)   2.000 us   2.000 us   2.000 us\n"));
  EXPECT_THAT(text, HasSubstr("\nB is 1.25x faster than A"));
  EXPECT_THAT(text, HasSubstr("\nC takes as long as A\n"));
}

TEST(CompareTest, EveryStepHasItsErrorBar) {
  Report measured = SampleReport();
  measured.error_bar = {"v5e", "training", 3, 0.0421, -0.077, "V40", "on v5e training: ..."};
  Report of_no_kind = SampleReport();
  of_no_kind.error_bar = {};
  EXPECT_THAT(Compare({Column(measured), Column(of_no_kind)}),
              HasSubstr("\nvalidated error         4.2%, worst -7.7%          -\n"));
}

TEST(CompareTest, ReportsThatWentThroughJsonCompareAlike) {
  const std::vector<Compared> direct = {Column(SampleReport()), Column(WithoutGather())};
  std::vector<Compared> read;
  for (const Compared& c : direct) {
    read.push_back(Column(*FromJson(ToJson(*c.report, JsonDetail::kExchange))));
  }
  EXPECT_EQ(Compare(read), Compare(direct));
}

TEST(CompareTest, WhatDoesNotFitIsAColumn) {
  const std::string text = Compare({{"big", "v5e-1x1", std::nullopt, "it needs 20 GiB"},
                                    Column(SampleReport()),
                                    Column(WithoutGather())});
  EXPECT_THAT(text, HasSubstr("workload                         big          f          g\n"));
  EXPECT_THAT(text, HasSubstr("step time               does not fit   100.0 us   80.00 us\n"));
  EXPECT_THAT(text, HasSubstr("speed                              -      1.00x      1.25x\n"));
  EXPECT_THAT(text, HasSubstr("\nC is 1.25x faster than B"));
  EXPECT_THAT(text, HasSubstr("\nA, big on v5e-1x1: it needs 20 GiB\n"));
}

}  // namespace
}  // namespace tpusim::results
