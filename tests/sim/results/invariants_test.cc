#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "configs/status_macros.h"
#include "sim/results/report/build_report.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::HasSubstr;

// Returns the message of BuildReport about a sample that was tampered with.
std::string MessageAfter(const std::function<void(Sample&)>& tamper) {
  Sample s = MakeSample();
  tamper(s);
  const absl::StatusOr<Report> r = BuildReport(s.config, s.info, s.timeline, "f");
  if (r.ok()) return "";
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInternal);
  return Message(r.status());
}

void SetStep(Sample& s, Picoseconds step) {
  s.timeline.step_time = step;
  s.timeline.critical_path.clear();
  for (sim::OpTotals& op : s.timeline.ops) op.main = op.main_busy = Picoseconds(0);
  for (const SampleOp op : {kWhile, kMatmul, kLoopFusion}) {
    s.timeline.ops[op].total = Picoseconds(0);
  }
  for (sim::DeviceTotals& d : s.timeline.devices) {
    d.finish = step;
    d.mxu_busy = d.vpu_busy = d.compute_busy = Picoseconds(0);
    d.collective = d.exposed = Picoseconds(0);
  }
}

TEST(InvariantsTest, TheSampleHolds) {
  EXPECT_EQ(MessageAfter([](Sample&) {}), "");
}

TEST(InvariantsTest, NoStepBeatsItsComputeBound) {
  // 6 GFLOP need 60 us.
  EXPECT_EQ(MessageAfter([](Sample& s) { SetStep(s, Microseconds(60)); }), "");
  EXPECT_THAT(MessageAfter([](Sample& s) { SetStep(s, Picoseconds(59'999'000)); }),
              HasSubstr("less than its compute bound of 60000000 ps"));
}

TEST(InvariantsTest, OperationsOfTheMainStreamFitIntoTheStep) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.ops[kWhile].main += Picoseconds(1); }),
              HasSubstr("operations of the main stream take 100000001 ps of a step of 100000000"));
}

TEST(InvariantsTest, NoStepBeatsItsHbmBound) {
  EXPECT_THAT(
      MessageAfter([](Sample& s) { s.timeline.devices[0].moved.hbm() = Bytes(100'001'000); }),
      HasSubstr("less than its HBM bound of 100001000 ps"));
}

TEST(InvariantsTest, EveryByteThroughHbmIsOfAnOperation) {
  EXPECT_THAT(
      MessageAfter([](Sample& s) { s.timeline.devices[0].moved.hbm() = Bytes(30'001'000); }),
      HasSubstr("30001000 bytes went through HBM, operations account for 30000000"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.info.hbm_bytes = Bytes(40'000'000); }),
              HasSubstr("the kernels move 40000000 bytes through HBM, only 30000000 went there"));
}

TEST(InvariantsTest, NoStepBeatsItsSerialCollectives) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.ops[kAllGather].count = 11; }),
              HasSubstr("less than its ICI bound of 110000000 ps"));
}

TEST(InvariantsTest, NoHbmMovesMoreThanItsRate) {
  // 100 us at 1 TB/s are 100 MB.
  EXPECT_EQ(MessageAfter([](Sample& s) { s.timeline.devices[1].moved.hbm() = Bytes(100'000'000); }),
            "");
  EXPECT_THAT(
      MessageAfter([](Sample& s) { s.timeline.devices[1].moved.hbm() = Bytes(110'000'000); }),
      HasSubstr("device 1: 110000000 bytes through HBM in 100000000 ps is 1.100 of its rate"));
}

TEST(InvariantsTest, NoLinkCarriesMoreThanItsRate) {
  EXPECT_THAT(MessageAfter([](Sample& s) {
                s.timeline.devices[1].sent[1] = Bytes(11'000'000);
                s.timeline.devices[0].received[1] = Bytes(11'000'000);
              }),
              HasSubstr("link x- of chip 1 is used 1.100000 of its rate"));
}

TEST(InvariantsTest, WhatIsSentArrives) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[1].received[0] = Bytes(4'999'999); }),
              HasSubstr("chip 1 received 4999999 bytes over links of direction x+, 5000000 were "
                        "sent"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[0].received[0] = Bytes(1); }),
              HasSubstr("chip 0 received 1 bytes over links of direction x+, 0 were sent"));
}

TEST(InvariantsTest, NothingLeavesWhereThereIsNoLink) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[0].sent[1] = Bytes(1); }),
              HasSubstr("chip 0 sent 1 bytes to x-, where it has no link"));
}

TEST(InvariantsTest, BusyTimesFitIntoTheStep) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[1].finish = Microseconds(101); }),
              HasSubstr("device 1: finish is 101000000 ps, step time 100000000 ps"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[0].mxu_busy = Microseconds(79); }),
              HasSubstr("device 0: MXU busy is 79000000 ps, compute busy 78000000 ps"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[0].vpu_busy = Microseconds(7); }),
              HasSubstr("compute busy is 78000000 ps, MXU busy plus VPU busy 77000000 ps"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[0].exposed = Microseconds(81); }),
              HasSubstr("exposed communication is 81000000 ps, time of collectives 80000000 ps"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[0].exposed = Microseconds(23); }),
              HasSubstr("compute busy plus exposed communication is 101000000 ps"));
}

TEST(InvariantsTest, TheCriticalDeviceFinishesLast) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices[0].finish = Microseconds(99); }),
              HasSubstr("its critical device 0 finishes at 99000000 ps"));
}

TEST(InvariantsTest, ModelFlopsArePartOfAll) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.info.model_flops = Flops(7'000'000'000); }),
              HasSubstr("model FLOPs are more than"));
}

TEST(InvariantsTest, NoStepIsNegative) {
  EXPECT_THAT(MessageAfter([](Sample& s) { SetStep(s, Picoseconds(-5)); }), HasSubstr("-5 ps"));
}

// Devices of one class start together.
TEST(InvariantsTest, NoCollectiveBeatsItsBound) {
  EXPECT_THAT(MessageAfter([](Sample& s) {
                s.timeline.class_of = {0, 0};
                s.info.collectives[1].bound = Microseconds(31);
              }),
              HasSubstr("bound of collective-permute-start.4: 62000000 ps of 60000002"));
}

TEST(InvariantsTest, NoPeakIsMoreThanThereIs) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.info.peak.hbm() = Bytes(16'000'000'001); }),
              HasSubstr("HBM: 16000000001 bytes of 16000000000 of usable memory"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.info.vmem_at_peak.bytes = Bytes(1); }),
              HasSubstr("VMEM: 1 bytes of 0 of its capacity"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.info.vmem_at_peak.windows = Bytes(1); }),
              HasSubstr("arrays and windows in VMEM: 1 bytes of 0 of its peak"));
  EXPECT_THAT(MessageAfter([](Sample& s) {
                s.info.live_at_peak.emplace_back().bytes = Bytes(4'000'000'001);
              }),
              HasSubstr("arrays in HBM: 4000000001 bytes of 4000000000 of its peak"));
}

// One device waits for what has been sent before it asked.
TEST(InvariantsTest, WhoComesLateToACollectiveHasNoBound) {
  Sample s = MakeSample();
  s.timeline.class_of = {0, 1};
  s.info.collectives[1].bound = Microseconds(31);
  const absl::StatusOr<Report> r = BuildReport(s.config, s.info, s.timeline, "f");
  ASSERT_TRUE(r.ok()) << Message(r.status());
  for (const CollectiveReport& c : r->collectives) {
    EXPECT_EQ(c.bound, c.kind == "all-gather" ? Microseconds(10) : Picoseconds(0));
  }
  // Nor is the step bound by it, however often it runs.
  s.timeline.ops[kAllGather].count = 11;
  const absl::StatusOr<Report> late = BuildReport(s.config, s.info, s.timeline, "f");
  ASSERT_TRUE(late.ok()) << Message(late.status());
  EXPECT_EQ(late->bound.ici, r->bound.ici);
}

TEST(InvariantsTest, TablesFitTogether) {
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.devices.pop_back(); }),
              HasSubstr("timeline has 1 devices, the slice 2"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.ops.pop_back(); }),
              HasSubstr("timeline has 4 operations, the program 5"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.timeline.critical_device = 2; }),
              HasSubstr("critical device 2 is not one of the 2"));
  EXPECT_THAT(MessageAfter([](Sample& s) { s.info.ops[kPermute].collective = 2; }),
              HasSubstr("names collective 2 of 2"));
}

}  // namespace
}  // namespace tpusim::results
