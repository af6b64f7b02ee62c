#include "sim/recording/step_merger.h"

#include <gtest/gtest.h>

#include <vector>

namespace tpusim::sim {
namespace {

Span Step(int64_t step, int64_t start, int64_t end, int32_t op = 0) {
  Span span;
  span.op = op;
  span.step = step;
  span.start = Picoseconds(start);
  span.end = Picoseconds(end);
  span.bytes = Bytes(100);
  return span;
}

// `steps` steps of 8 ps, 10 ps apart.
std::vector<Span> Merged(int64_t limit, int64_t steps) {
  Recording recording;
  StepMerger merger(recording.PlaceOf({0}, Track::kMxu, 0));
  for (int64_t i = 0; i < steps; ++i) merger.Add(recording, limit, 1, Step(i, 10 * i, 10 * i + 8));
  merger.Flush(recording);
  return recording.Spans();
}

TEST(StepMerger, FewStepsStayAsTheyAre) {
  const std::vector<Span> spans = Merged(4, 4);
  ASSERT_EQ(spans.size(), 4u);
  for (const Span& s : spans) EXPECT_EQ(s.merged, 0);
}

TEST(StepMerger, NeighboursBecomeOne) {
  const std::vector<Span> spans = Merged(4, 11);
  // With the fifth two go into one, with the ninth four: 0-3, 4-7, 8-10.
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].step, 0);
  EXPECT_EQ(spans[0].start, Picoseconds(0));
  EXPECT_EQ(spans[0].end, Picoseconds(38));
  EXPECT_EQ(spans[0].merged, 4);
  EXPECT_EQ(spans[0].busy, Picoseconds(32));
  EXPECT_EQ(spans[0].bytes, Bytes(400));
  EXPECT_EQ(spans[2].step, 8);
  EXPECT_EQ(spans[2].end, Picoseconds(108));
  EXPECT_EQ(spans[2].merged, 3);
  EXPECT_EQ(spans[2].busy, Picoseconds(24));
}

TEST(StepMerger, SumsDoNotChange) {
  for (const int64_t limit : {1, 2, 3, 7, 64}) {
    for (const int64_t steps : {1, 5, 64, 65, 1000}) {
      const std::vector<Span> spans = Merged(limit, steps);
      EXPECT_LE(static_cast<int64_t>(spans.size()), limit);
      if (steps > limit) {
        EXPECT_GE(static_cast<int64_t>(spans.size()), (limit + 1) / 2);
      }
      int64_t count = 0, busy = 0, bytes = 0;
      for (const Span& s : spans) {
        count += s.merged > 0 ? s.merged : 1;
        busy += s.merged > 0 ? s.busy.value() : (s.end - s.start).value();
        bytes += s.bytes.value();
      }
      EXPECT_EQ(count, steps);
      EXPECT_EQ(busy, 8 * steps);
      EXPECT_EQ(bytes, 100 * steps);
    }
  }
}

TEST(StepMerger, OperationsAndTheirExecutionsStayApart) {
  Recording recording;
  StepMerger merger(recording.PlaceOf({0}, Track::kMxu, 0));
  merger.Add(recording, 1, 1, Step(0, 0, 8));
  merger.Add(recording, 1, 1, Step(1, 10, 18));
  merger.Add(recording, 1, 2, Step(0, 20, 28));
  merger.Add(recording, 1, 2, Step(0, 30, 38, /*op=*/1));
  merger.Flush(recording);
  const std::vector<Span> spans = recording.Spans();
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].merged, 2);
  EXPECT_EQ(spans[1].merged, 0);
  EXPECT_EQ(spans[2].op, 1);
}

TEST(StepMerger, WithoutALimitEveryStepIsThere) { EXPECT_EQ(Merged(0, 1000).size(), 1000u); }

// Between 300 and 100 every 10 ps, then 0.
std::vector<CounterSample> Thinned(int64_t limit) {
  Recording recording;
  RateThinner rates(recording.PlaceOf({0}, Counter::kBandwidth, 0));
  for (int64_t i = 0; i < 12; ++i) {
    rates.Add(recording, limit, 1, Picoseconds(10 * i), i % 2 == 0 ? 300 : 100);
  }
  rates.Add(recording, limit, 1, Picoseconds(120), 0);
  rates.Flush(recording);
  return recording.Samples();
}

TEST(RateThinner, IntegralsStay) {
  for (const int64_t limit : {0, 1, 2, 3, 4, 5, 13}) {
    const std::vector<CounterSample> samples = Thinned(limit);
    ASSERT_FALSE(samples.empty());
    double area = 0;
    for (size_t i = 0; i + 1 < samples.size(); ++i) {
      area +=
          samples[i].value * static_cast<double>((samples[i + 1].time - samples[i].time).value());
    }
    EXPECT_NEAR(area, 6 * 10 * (300 + 100), 1e-6) << limit;
    EXPECT_EQ(samples.back().time, Picoseconds(120)) << limit;
    EXPECT_EQ(samples.back().value, 0) << limit;
    // One more than the limit says what holds in the end.
    if (limit > 0) {
      EXPECT_LE(static_cast<int64_t>(samples.size()), limit + 1);
    }
  }
}

TEST(RateThinner, NeighboursBecomeTheirMean) {
  const std::vector<CounterSample> samples = Thinned(4);
  // 13 changes, four in each, and the last one.
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[0].value, 200);
  EXPECT_EQ(samples[1].time, Picoseconds(40));
  EXPECT_EQ(samples[1].value, 200);
}

}  // namespace
}  // namespace tpusim::sim
