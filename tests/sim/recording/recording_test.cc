// A recording in little memory gives everything back.
#include "sim/recording/recording.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace tpusim::sim {
namespace {

Span MakeSpan(int64_t start, int64_t end, int32_t op = 0) {
  Span span;
  span.track = Track::kMxu;
  span.op = op;
  span.start = Picoseconds(start);
  span.end = Picoseconds(end);
  return span;
}

std::vector<int64_t> Starts(const std::vector<Span>& spans) {
  std::vector<int64_t> starts;
  for (const Span& s : spans) starts.push_back(s.start.value());
  return starts;
}

TEST(Recording, ASpanComesBackAsItWas) {
  Recording recording;
  Span span = MakeSpan(5, 9, 3);
  span.device = 7;
  span.track = Track::kIci;
  span.lane = 2;
  span.step = 11;
  span.bytes = Bytes(1 << 20);
  span.flow_out = 13;
  recording.Add(span);
  span.flow_out = 0;
  span.flow_in = 14;
  recording.Add(span);
  span.flow_in = 0;
  span.merged = 4;
  span.busy = Picoseconds(3);
  recording.Add(span);
  const std::vector<Span> spans = recording.Spans();
  ASSERT_EQ(spans.size(), 3u);
  for (const Span& s : spans) {
    EXPECT_EQ(s.device, 7);
    EXPECT_EQ(s.track, Track::kIci);
    EXPECT_EQ(s.lane, 2);
    EXPECT_EQ(s.op, 3);
    EXPECT_EQ(s.step, 11);
    EXPECT_EQ(s.bytes, Bytes(1 << 20));
    EXPECT_EQ(s.start, Picoseconds(5));
    EXPECT_EQ(s.end, Picoseconds(9));
  }
  EXPECT_EQ(spans[0].flow_out, 13u);
  EXPECT_EQ(spans[0].flow_in, 0u);
  EXPECT_EQ(spans[1].flow_out, 0u);
  EXPECT_EQ(spans[1].flow_in, 14u);
  EXPECT_EQ(spans[2].flow_out + spans[2].flow_in, 0u);
  EXPECT_EQ(spans[2].merged, 4);
  EXPECT_EQ(spans[2].busy, Picoseconds(3));
}

TEST(Recording, DevicesOfOneClassShareWhatIsStored) {
  Recording recording;
  const Recording::Place place = recording.PlaceOf({1, 4, 6}, Track::kVpu, 0);
  recording.Add(place, MakeSpan(0, 1));
  recording.Add(recording.PlaceOf({1, 4}, Counter::kBandwidth, 0), Picoseconds(3), 2.5);
  EXPECT_EQ(recording.stored_spans(), 1);
  const std::vector<Span> spans = recording.Spans();
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].device, 1);
  EXPECT_EQ(spans[2].device, 6);
  EXPECT_EQ(spans[2].track, Track::kVpu);
  const std::vector<CounterSample> samples = recording.Samples();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[1].device, 4);
  EXPECT_EQ(samples[1].time, Picoseconds(3));
  EXPECT_EQ(samples[1].value, 2.5);
}

TEST(Recording, RepetitionsInRepetitionsAreStoredOnce) {
  Recording recording;
  recording.Add(MakeSpan(0, 1));
  const Recording::Mark layer = recording.SetMark();
  recording.Add(MakeSpan(10, 11));
  const Recording::Mark step = recording.SetMark();
  Span sent = MakeSpan(20, 21);
  sent.flow_out = 1;
  recording.Add(sent);
  recording.Repeat(step, Picoseconds(5), 2, 1);     // also at 25 and 30
  recording.Repeat(layer, Picoseconds(100), 3, 3);  // all of it at +100, +200, +300
  recording.Add(MakeSpan(400, 401));
  EXPECT_EQ(recording.stored_spans(), 4);
  const std::vector<Span> spans = recording.Spans();
  EXPECT_EQ(Starts(spans), (std::vector<int64_t>{0, 10, 20, 25, 30, 110, 120, 125, 130, 210, 220,
                                                 225, 230, 310, 320, 325, 330, 400}));
  std::vector<uint64_t> arrows;
  for (const Span& s : spans) {
    if (s.flow_out != 0) arrows.push_back(s.flow_out);
  }
  EXPECT_EQ(arrows, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(Recording, AMarkMayLieInsideWhatRepeats) {
  Recording recording;
  const Recording::Mark first = recording.SetMark();
  recording.Add(MakeSpan(0, 1));
  const Recording::Mark second = recording.SetMark();
  recording.Add(MakeSpan(5, 6));
  recording.Repeat(first, Picoseconds(10), 1, 0);   // 10, 15
  recording.Repeat(second, Picoseconds(20), 1, 0);  // 5, 10, 15 again
  EXPECT_EQ(Starts(recording.Spans()), (std::vector<int64_t>{0, 5, 10, 15, 25, 30, 35}));
}

// Windows give the same spans as reading them one by one.
TEST(Recording, WindowsHoldEverythingOnceAndInOrder) {
  std::mt19937 random(3);
  const auto number = [&](int64_t from, int64_t to) {
    return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
  };
  for (int i = 0; i < 50; ++i) {
    Recording recording;
    std::vector<std::tuple<int64_t, int64_t, int32_t>> expected;  // start, end, op
    std::vector<std::pair<Recording::Mark, size_t>> marks;
    std::vector<int64_t> began;
    int64_t now = 0;
    for (int32_t op = 0; op < 300; ++op) {
      now += number(0, 3000);
      if (number(0, 20) == 0) {
        marks.emplace_back(recording.SetMark(), expected.size());
        began.push_back(now);
        now += 1;
      }
      // Some began long ago.
      const int64_t length =
          number(0, 9) == 0 ? number(0, now) : number(0, std::min<int64_t>(now, 500));
      recording.Add(MakeSpan(now - length, now, op));
      expected.emplace_back(now - length, now, op);
      if (!marks.empty() && number(0, 40) == 0) {
        const size_t m = static_cast<size_t>(number(0, static_cast<int64_t>(marks.size()) - 1));
        const int64_t period = now + 1 - began[m], times = number(1, 4);
        recording.Repeat(marks[m].first, Picoseconds(period), times, 0);
        const size_t end = expected.size();
        for (int64_t k = 1; k <= times; ++k) {
          for (size_t e = marks[m].second; e < end; ++e) {
            auto [start, stop, of] = expected[e];
            expected.emplace_back(start + period * k, stop + period * k, of);
          }
        }
        now += 1 + period * times;
        marks.clear();
        began.clear();
      }
    }
    RecordingReader reader(recording, 1 + number(1, 100));
    std::vector<std::tuple<int64_t, int64_t, int32_t>> found;
    std::vector<Span> spans;
    std::vector<CounterSample> samples;
    int64_t from = 0, windows = 0;
    while (reader.Next(spans, samples)) {
      for (const Span& s : spans) {
        EXPECT_GE(s.start.value(), from);
        EXPECT_LT(s.start, reader.until());
        found.emplace_back(s.start.value(), s.end.value(), s.op);
      }
      from = reader.until().value();
      ++windows;
    }
    EXPECT_GE(windows, 3);
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << i;
  }
}

}  // namespace
}  // namespace tpusim::sim
