#include "sim/results/trace/trace_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "configs/status_macros.h"
#include "sim/results/trace/trace_source.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<TraceModel> Build(const Sample& s) { return WholeTrace(s); }

// The path begins with the device.
const TraceTrack& TrackAt(const TraceModel& m, const std::string& path) {
  std::vector<std::string> paths;
  for (const TraceTrack& t : m.tracks) {
    const bool device = t.parent < 0 || m.tracks[t.parent].name == "toy-2x1";
    paths.push_back(device ? t.name : paths[t.parent] + "/" + t.name);
    if (paths.back() == path) return t;
  }
  ADD_FAILURE() << "no track " << path;
  static const TraceTrack none;
  return none;
}

// "name start-end" in nanoseconds.
std::vector<std::string> SlicesOf(const TraceModel& m, const std::string& path) {
  std::vector<std::string> out;
  for (const TraceSlice& s : TrackAt(m, path).slices) {
    out.push_back(m.names[s.name] + " " + std::to_string(TraceNanoseconds(s.start)) + "-" +
                  std::to_string(TraceNanoseconds(s.end)));
  }
  return out;
}

// The sample with these spans alone, all on device 0.
Sample WithSpans(std::vector<sim::Span> spans) {
  Sample s = MakeSample();
  s.timeline.recording = Recorded(spans);
  s.timeline.recorded_devices = {0};
  return s;
}

sim::Span MakeSpan(sim::Track track, int32_t lane, int32_t op, int64_t start_ns, int64_t end_ns) {
  sim::Span s;
  s.track = track;
  s.lane = lane;
  s.op = op;
  s.start = Nanoseconds(start_ns);
  s.end = Nanoseconds(end_ns);
  return s;
}

TEST(TraceModelTest, TracksOfAChipInOrder) {
  const TraceModel m = *Build(MakeSample());
  std::map<int32_t, std::string> by_rank;
  for (const TraceTrack& t : m.tracks) {
    if (t.parent >= 0 && m.tracks[t.parent].name == "TPU_0(process=0,(0,0,0,0))")
      by_rank[t.rank] = t.name;
  }
  std::vector<std::string> names;
  for (const auto& [rank, name] : by_rank) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("Steps", "XLA Modules", "Scopes", "TensorCore", "MXU", "VPU",
                                 "Collectives", "HBM DMA", "HBM DMA 2", "ICI x+", "HBM bandwidth",
                                 "ICI x+ utilization", "Live HBM"));
}

TEST(TraceModelTest, OperationsNestOnTheirTrack) {
  const TraceModel m = *Build(MakeSample());
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/TensorCore"),
              ElementsAre("all-gather.1 0-20000", "while.2 20000-92000", "fusion.3 20000-55000",
                          "fusion.3 56000-91000", "loop_fusion.5 92000-100000"));
}

TEST(TraceModelTest, ScopesMergeNeighboursAndSkipTheLoopItself) {
  const TraceModel m = *Build(MakeSample());
  // layer spans the all-gather and the loop; while/body the iterations with the microsecond
  // between them, but not the one behind them, which is the loop's own.
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/Scopes"),
              ElementsAre("jit(f) 0-100000", "layer 0-92000", "while 20000-91000",
                          "body 20000-91000", "loss 92000-100000"));
}

TEST(TraceModelTest, RoundingDownNeverMakesSlicesOverlap) {
  const TraceModel m = *Build(MakeSample());
  // Grid steps of 11,666.667 ns from 20,000 ns on.
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/MXU"),
              ElementsAre("fusion.3 20000-31666", "fusion.3 31666-43333", "fusion.3 43333-55000",
                          "fusion.3 56000-67666", "fusion.3 67666-79333", "fusion.3 79333-91000"));
}

TEST(TraceModelTest, OverlapGetsTheFirstFreeLane) {
  using sim::Track;
  const TraceModel m = *Build(WithSpans({
      MakeSpan(Track::kHbmDma, 0, kMatmul, 0, 10),
      MakeSpan(Track::kHbmDma, 0, kMatmul, 2, 8),    // inside the first: still its own lane
      MakeSpan(Track::kHbmDma, 0, kMatmul, 4, 20),   // overlaps both
      MakeSpan(Track::kHbmDma, 0, kMatmul, 8, 12),   // the second lane is free again
      MakeSpan(Track::kHbmDma, 0, kMatmul, 10, 11),  // and the first
  }));
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/HBM DMA"),
              ElementsAre("fusion.3 0-10", "fusion.3 10-11"));
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/HBM DMA 2"),
              ElementsAre("fusion.3 2-8", "fusion.3 8-12"));
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/HBM DMA 3"), ElementsAre("fusion.3 4-20"));
}

TEST(TraceModelTest, StreamsNeverNestInEachOther) {
  using sim::Track;
  const TraceModel m = *Build(WithSpans({
      MakeSpan(Track::kCollective, 0, kAllGather, 0, 10),
      MakeSpan(Track::kCollective, 1, kPermute, 2, 8),
      MakeSpan(Track::kCollective, 0, kPermute, 3, 5),
      MakeSpan(Track::kCollective, 2, kPermute, 12, 13),
  }));
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/Collectives"),
              ElementsAre("all-gather.1 0-10", "collective-permute-start.4 3-5",
                          "collective-permute-start.4 12-13"));
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/Collectives 2"),
              ElementsAre("collective-permute-start.4 2-8"));
}

TEST(TraceModelTest, ArrivalsAreNotTakenForOperations) {
  using sim::Track;
  std::vector<sim::Span> spans = {MakeSpan(Track::kCollective, 0, kPermute, 0, 10),
                                  MakeSpan(Track::kCollective, 0, kPermute, 7, 7)};
  spans[1].bytes = Bytes(2'000'000);
  const TraceModel m = *Build(WithSpans(spans));
  EXPECT_THAT(
      SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/Collectives"),
      ElementsAre("collective-permute-start.4 0-10", "arrival of collective-permute-start.4 7-7"));
  EXPECT_EQ(TrackAt(m, "TPU_0(process=0,(0,0,0,0))/Collectives").slices[1].detail,
            SliceDetail::kWork);
}

TEST(TraceModelTest, LinksHaveTracksOfTheirOwn) {
  using sim::Track;
  const TraceModel m = *Build(
      WithSpans({MakeSpan(Track::kIci, 2, kPermute, 0, 5), MakeSpan(Track::kIci, 1, kPermute, 0, 5),
                 MakeSpan(Track::kIci, 1, kPermute, 1, 5)}));
  EXPECT_EQ(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/ICI x-").size(), 1u);
  EXPECT_EQ(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/ICI x- 2").size(), 1u);
  EXPECT_EQ(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/ICI y+").size(), 1u);
}

TEST(TraceModelTest, CountersKeepChangesOnlyInTheirUnits) {
  const TraceModel m = *Build(MakeSample());
  const auto values = [&](const std::string& path) {
    std::vector<double> out;
    for (const TraceSample& s : TrackAt(m, path).samples) out.push_back(s.value);
    return out;
  };
  EXPECT_THAT(values("TPU_0(process=0,(0,0,0,0))/HBM bandwidth"), ElementsAre(0, 800, 200));
  EXPECT_THAT(values("TPU_0(process=0,(0,0,0,0))/ICI x+ utilization"), ElementsAre(50, 0));
  EXPECT_THAT(values("TPU_0(process=0,(0,0,0,0))/Live HBM"), ElementsAre(3e9, 4e9));
  EXPECT_EQ(TrackAt(m, "TPU_0(process=0,(0,0,0,0))/HBM bandwidth").unit, "GB/s");
}

TEST(TraceModelTest, ArrowsToDevicesThatAreNotThereAreLeftOut) {
  Sample s = MakeSample();
  EXPECT_EQ(TotalsOf(*Build(s)).flows, 6);  // three transfers each way
  std::vector<sim::Span> spans = s.timeline.recording.Spans();
  std::vector<sim::CounterSample> samples = s.timeline.recording.Samples();
  std::erase_if(spans, [](const sim::Span& x) { return x.device == 1; });
  std::erase_if(samples, [](const sim::CounterSample& x) { return x.device == 1; });
  s.timeline.recording = Recorded(spans, samples);
  s.timeline.recorded_devices = {0};
  const TraceModel m = *Build(s);
  EXPECT_EQ(TotalsOf(m).flows, 0);
  for (const TraceTrack& t : m.tracks) {
    for (const TraceSlice& slice : t.slices) EXPECT_EQ(slice.flow_out, 0u);
  }
}

TEST(TraceModelTest, AnArrowMayEndInASliceThatHadBegunBefore) {
  using sim::Track;
  std::vector<sim::Span> spans = {MakeSpan(Track::kIci, 0, kPermute, 5, 9),
                                  MakeSpan(Track::kCollective, 0, kPermute, 0, 10)};
  spans[0].flow_out = 7;
  spans[1].flow_in = 7;
  const TraceModel m = *Build(WithSpans(spans));
  EXPECT_TRUE(TrackAt(m, "TPU_0(process=0,(0,0,0,0))/Collectives").slices[0].flow_in_at_end);

  spans[1].end = Nanoseconds(4);  // over before anything was sent
  EXPECT_THAT(Message(Build(WithSpans(spans)).status()),
              HasSubstr("arrow 7 leaves at 5000 ps and arrives before 4000 ps"));
}

TEST(TraceModelTest, RefusesSpansThatCannotBe) {
  using sim::Track;
  EXPECT_THAT(Message(Build(WithSpans({MakeSpan(Track::kMxu, 0, kMatmul, 5, 4)})).status()),
              HasSubstr("from 5000 to 4000 ps"));
  EXPECT_THAT(Message(Build(WithSpans({MakeSpan(Track::kMxu, 0, 5, 0, 4)})).status()),
              HasSubstr("operation 5 of 5"));
  EXPECT_THAT(Message(Build(WithSpans({MakeSpan(Track::kIci, 6, 0, 0, 4)})).status()),
              HasSubstr("direction 6"));
  std::vector<sim::Span> twice(2, MakeSpan(Track::kIci, 0, kPermute, 0, 4));
  twice[0].flow_out = twice[1].flow_out = 3;
  EXPECT_THAT(Message(Build(WithSpans(twice)).status()), HasSubstr("arrow 3 leaves twice"));
}

TEST(TraceModelTest, ChipsWithTwoDevicesHaveAGroupForEach) {
  Sample s = MakeSample();
  s.config.topology = configs::Topology({1, 1, 2}, {false, false, false}, 2);
  const TraceModel m = *Build(s);
  EXPECT_EQ(TrackAt(m, "TPU_0(process=0,(0,0,0,0))/TensorCore").slices.size(), 5u);
  EXPECT_EQ(TrackAt(m, "TPU_1(process=0,(0,0,0,1))/TensorCore").slices.size(), 5u);
}

TEST(TraceModelTest, DevicesHaveTheNumbersAndProcessesOfJax) {
  Sample s = MakeSample();
  s.config.topology = configs::Topology({4, 2, 1}, {false, false, false}, 1);
  s.config.chip.host.chips_x = 2;
  s.config.chip.host.chips_y = 2;
  s.config.chip.device_order.enumeration_tile = {2, 2, 1};
  // Host by host, x minor: chips 0, 1, 4, 5 of our own numbers, then 2, 3, 6, 7.
  const std::vector<std::string> names = JaxNames(s.config);
  EXPECT_EQ(names[1], "TPU_1(process=0,(1,0,0,0))");
  EXPECT_EQ(names[4], "TPU_2(process=0,(0,1,0,0))");
  EXPECT_EQ(names[2], "TPU_4(process=1,(2,0,0,0))");
  EXPECT_EQ(names[7], "TPU_7(process=1,(3,1,0,0))");
}

TEST(TraceModelTest, SeveralDevicesAreInAGroupInOrder) {
  const TraceModel m = *Build(MakeSample());
  EXPECT_EQ(m.tracks[0].name, "toy-2x1");
  EXPECT_EQ(m.tracks[1].parent, 0);
  EXPECT_EQ(m.tracks[1].name, "TPU_0(process=0,(0,0,0,0))");
  // One has none.
  EXPECT_EQ((*Build(WithSpans({}))).tracks[0].name, "TPU_0(process=0,(0,0,0,0))");
}

TEST(TraceModelTest, TheProgramIsTheModule) {
  const TraceModel m = *Build(MakeSample());
  EXPECT_THAT(SlicesOf(m, "TPU_1(process=0,(1,0,0,0))/XLA Modules"), ElementsAre("jit_f 0-100000"));
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/Steps"),
              ElementsAre("step 0 (critical device) 0-100000"));
}

TEST(TraceModelTest, WhatTakesNoTimeIsBesideItsNeighbour) {
  using sim::Track;
  // A loop, in it an instant and a product; a last instant where the loop ends and the next
  // operation begins.
  std::vector<sim::Span> spans = {MakeSpan(Track::kTensorCore, 0, kPermute, 10, 10),
                                  MakeSpan(Track::kTensorCore, 0, kMatmul, 10, 20),
                                  MakeSpan(Track::kTensorCore, 0, kPermute, 20, 20),
                                  MakeSpan(Track::kTensorCore, 0, kWhile, 10, 20),
                                  MakeSpan(Track::kTensorCore, 0, kLoopFusion, 20, 30)};
  spans[0].order = 1;
  spans[1].order = 2;
  spans[4].order = 1;
  const TraceModel m = *Build(WithSpans(spans));
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/TensorCore"),
              ElementsAre("while.2 10-20", "collective-permute-start.4 10-10", "fusion.3 10-20",
                          "collective-permute-start.4 20-20", "loop_fusion.5 20-30"));
  EXPECT_THAT(
      SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/Scopes"),
      ElementsAre("jit(f) 10-30", "layer 10-20", "while 10-20", "body 10-20", "loss 20-30"));
}

TEST(TraceModelTest, OperationsWithoutScopeAreInThatOfTheirNeighbours) {
  using sim::Track;
  Sample s = WithSpans({MakeSpan(Track::kTensorCore, 0, kWhile, 0, 5),
                        MakeSpan(Track::kTensorCore, 0, kMatmul, 5, 10),
                        MakeSpan(Track::kTensorCore, 0, kWhile, 10, 12),
                        MakeSpan(Track::kTensorCore, 0, kLoopFusion, 12, 20),
                        MakeSpan(Track::kTensorCore, 0, kWhile, 21, 22)});
  s.info.ops[kWhile].scope.clear();
  const TraceModel m = *Build(s);
  EXPECT_THAT(SlicesOf(m, "TPU_0(process=0,(0,0,0,0))/Scopes"),
              ElementsAre("(no scope) 0-5", "jit(f) 5-20", "layer 5-10", "while 5-10", "body 5-10",
                          "loss 12-20", "(no scope) 21-22"));
}

TEST(TraceModelTest, ArrowsLeadFromStartToFlightToDone) {
  using sim::Track;
  enum { kStart = 5, kDone };
  std::vector<sim::Span> spans;
  for (const int64_t at : {0, 50}) {
    spans.push_back(MakeSpan(Track::kTensorCore, 0, kStart, at, at));
    spans.push_back(MakeSpan(Track::kCollective, 1, kPermute, at, at + 30));
    spans.push_back(MakeSpan(Track::kTensorCore, 0, kDone, at + 10, at + 30));
  }
  // A third that nobody waits for has no arrows.
  spans.push_back(MakeSpan(Track::kTensorCore, 0, kStart, 90, 90));
  spans.push_back(MakeSpan(Track::kCollective, 1, kPermute, 90, 95));
  Sample s = WithSpans(spans);
  s.info.ops.resize(7);
  s.info.ops[kStart].starts = kPermute;
  s.info.ops[kDone].waits_for = kPermute;
  const TraceModel m = *Build(s);
  EXPECT_EQ(TotalsOf(m).flows, 4);
  const auto& core = TrackAt(m, "TPU_0(process=0,(0,0,0,0))/TensorCore").slices;
  const auto& flights = TrackAt(m, "TPU_0(process=0,(0,0,0,0))/Collectives").slices;
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(core[2 * i].flow_out, 0u);
    EXPECT_EQ(core[2 * i].flow_out, flights[i].flow_in);
    EXPECT_NE(flights[i].flow_out, 0u);
    EXPECT_EQ(flights[i].flow_out, core[2 * i + 1].flow_in);
    EXPECT_TRUE(flights[i].flow_out_at_end);
  }
  EXPECT_NE(core[0].flow_out, core[2].flow_out);
  EXPECT_EQ(core[4].flow_out, 0u);
}

TEST(TraceModelTest, Totals) {
  const TraceTotals t = TotalsOf(*Build(MakeSample()));
  // Per chip: step 1, module 1, scopes 5, TensorCore 5, MXU 6, VPU 1, collectives 3,
  // HBM DMA 6 windows + 3 arrivals, ICI 3.
  EXPECT_EQ(t.slices, 2 * (1 + 1 + 5 + 5 + 6 + 1 + 3 + 9 + 3));
  EXPECT_EQ(t.samples, 2 * (3 + 2 + 2));
  std::map<std::string, int64_t> busy;
  for (const TrackTotals& track : t.tracks) busy[track.path] = track.busy_ns;
  EXPECT_EQ(busy["toy-2x1/TPU_0(process=0,(0,0,0,0))/TensorCore"],
            100'000);  // 20 + 72 + 8 us, the loop counted once
  EXPECT_EQ(busy["toy-2x1/TPU_1(process=0,(1,0,0,0))/MXU"], 70'000);
  EXPECT_EQ(busy["toy-2x1/TPU_1(process=0,(1,0,0,0))/Collectives"], 80'000);
  EXPECT_EQ(busy["toy-2x1/TPU_1(process=0,(1,0,0,0))/ICI x-"], 50'000);  // 10 + 20 + 20 us
  EXPECT_EQ(busy.count("toy-2x1/TPU_0(process=0,(0,0,0,0))"),
            0u);  // groups hold nothing themselves
}

}  // namespace
}  // namespace tpusim::results
