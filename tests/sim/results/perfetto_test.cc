#include "sim/results/trace/perfetto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "configs/status_macros.h"
#include "sim/results/trace/perfetto_trace.pb.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

namespace pb = ::tpusim::perfetto;

pb::Trace Encoded(const Sample& s) {
  pb::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(PerfettoBytes(s)));
  return trace;
}

TEST(PerfettoTest, TheFirstPacketAloneClearsTheState) {
  const pb::Trace trace = Encoded(MakeSample());
  ASSERT_GT(trace.packet_size(), 1);
  EXPECT_EQ(trace.packet(0).sequence_flags(), 3u);
  // Ends and samples refer to no name.
  for (int i = 1; i < trace.packet_size(); ++i) {
    const pb::TrackEvent& event = trace.packet(i).track_event();
    const bool refers = event.type() != pb::TrackEvent::TYPE_SLICE_END &&
                        event.type() != pb::TrackEvent::TYPE_COUNTER;
    EXPECT_EQ(trace.packet(i).sequence_flags(), refers ? 2u : 0u);
  }
}

TEST(PerfettoTest, NamesAreInternedBeforeTheirUse) {
  std::set<uint64_t> names, arguments, strings;
  int used = 0;
  const pb::Trace trace = Encoded(MakeSample());
  for (const pb::TracePacket& p : trace.packet()) {
    // New entries come in the packet that first uses them, never twice.
    for (const auto& e : p.interned_data().event_names()) {
      EXPECT_TRUE(names.insert(e.iid()).second);
    }
    for (const auto& e : p.interned_data().debug_annotation_names()) {
      EXPECT_TRUE(arguments.insert(e.iid()).second);
    }
    for (const auto& e : p.interned_data().debug_annotation_string_values()) {
      EXPECT_TRUE(strings.insert(e.iid()).second);
    }
    if (p.track_event().has_name_iid()) {
      EXPECT_TRUE(names.count(p.track_event().name_iid()));
    }
    for (const auto& a : p.track_event().debug_annotations()) {
      ++used;
      EXPECT_TRUE(arguments.count(a.name_iid()));
      if (a.has_string_value_iid()) {
        EXPECT_TRUE(strings.count(a.string_value_iid()));
      }
    }
  }
  EXPECT_GT(used, 100);
}

TEST(PerfettoTest, TimeNeverRunsBackAndSlicesClose) {
  std::map<uint64_t, int> depth;
  uint64_t now = 0;
  int begins = 0;
  const pb::Trace trace = Encoded(MakeSample());
  for (const pb::TracePacket& p : trace.packet()) {
    if (!p.has_track_event()) continue;
    EXPECT_GE(p.timestamp(), now);
    now = p.timestamp();
    int& open = depth[p.track_event().track_uuid()];
    if (p.track_event().type() == pb::TrackEvent::TYPE_SLICE_BEGIN) ++open, ++begins;
    if (p.track_event().type() == pb::TrackEvent::TYPE_SLICE_END) {
      --open;
      EXPECT_GE(open, 0);
    }
  }
  for (const auto& [track, open] : depth) EXPECT_EQ(open, 0) << track;
  EXPECT_EQ(begins, 68);  // as TraceModelTest.Totals counts
}

TEST(PerfettoTest, ArrowsStartBeforeTheyEndEvenWithoutLatency) {
  Sample s = MakeSample();
  std::vector<sim::Span> spans;
  // Two arrows at one instant, against each other over tracks of both chips.
  for (int32_t device = 0; device < 2; ++device) {
    sim::Span out;
    out.device = device;
    out.track = sim::Track::kIci;
    out.lane = device;
    out.op = kPermute;
    out.start = Nanoseconds(5);
    out.end = Nanoseconds(9);
    out.flow_out = static_cast<uint64_t>(1 + device);
    sim::Span in = out;
    in.track = sim::Track::kHbmDma;
    in.flow_out = 0;
    in.flow_in = static_cast<uint64_t>(2 - device);
    spans.push_back(in);
    spans.push_back(out);
  }
  s.timeline.recording = Recorded(spans, s.timeline.recording.Samples());
  std::set<uint64_t> started;
  int ended = 0;
  const pb::Trace trace = Encoded(s);
  for (const pb::TracePacket& p : trace.packet()) {
    for (const uint64_t id : p.track_event().flow_ids()) started.insert(id);
    for (const uint64_t id : p.track_event().terminating_flow_ids()) {
      EXPECT_TRUE(started.count(id)) << id;
      ++ended;
    }
  }
  EXPECT_EQ(ended, 2);
}

TEST(PerfettoTest, TwoEncodingsAreTheSameBytes) {
  const Sample s = MakeSample();
  EXPECT_EQ(PerfettoBytes(s), PerfettoBytes(s));
}

TEST(PerfettoTest, AFileThatCannotBeWrittenIsTheUsersError) {
  const Sample s = MakeSample();
  const auto totals = WritePerfettoTrace("/no/such/folder/t", s.config, s.info, s.timeline);
  EXPECT_EQ(totals.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tpusim::results
