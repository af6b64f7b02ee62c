#include "sim/results/trace/trace_rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpusim::results {
namespace {

using sim::Span;

Span SpanOf(int32_t op, int64_t start, int64_t end, int64_t bytes = 0) {
  Span span;
  span.op = op;
  span.start = Picoseconds(start);
  span.end = Picoseconds(end);
  span.bytes = Bytes(bytes);
  return span;
}

isa::ProgramInfo Info() {
  isa::ProgramInfo info;
  for (const char* category : {"while", "while", "convolution fusion", "loop fusion"}) {
    isa::OpInfo op;
    op.name = category;
    op.category = category;
    info.ops.push_back(op);
  }
  return info;
}

// A loop over layers, 0 to 1000, has two rings of 100 in it; the third loop is as long as they are
// together, which is too long.
TEST(RingFinder, FindsShortLoopsWithoutLoops) {
  const isa::ProgramInfo info = Info();
  RingFinder finder(info, Picoseconds(100));
  finder.Add(SpanOf(0, 0, 1000));
  finder.Add(SpanOf(1, 100, 200));
  finder.Add(SpanOf(2, 100, 150));
  finder.Add(SpanOf(1, 300, 400));
  finder.Add(SpanOf(1, 500, 700));
  const std::vector<Ring> rings = finder.Finish();
  ASSERT_EQ(rings.size(), 2);
  EXPECT_EQ(rings[0].op, 1);
  EXPECT_EQ(rings[0].start, Picoseconds(100));
  EXPECT_EQ(rings[1].start, Picoseconds(300));
  EXPECT_EQ(rings[1].end, Picoseconds(400));
}

// Eight spans of 10 each with gaps of 2, of two operations by turns, as two: four go into each.
// Their busy time is 40, though they reach over 46.
TEST(RingSpans, NeighboursAreMerged) {
  const Ring ring{1, Picoseconds(0), Picoseconds(100)};
  RingSpans spans;
  for (int i = 0; i < 8; ++i) spans.Add(ring, 2, 0, SpanOf(2 + i % 2, 12 * i, 12 * i + 10, 5));
  spans.Add(ring, 2, 1, SpanOf(2, 50, 60, 7));  // Another lane is not concerned.
  const auto& merged = spans.Finish();
  ASSERT_EQ(merged.size(), 3);
  EXPECT_EQ(merged[0].second.op, 1);
  EXPECT_EQ(merged[0].second.merged, 4);
  EXPECT_EQ(merged[0].second.busy, Picoseconds(40));
  EXPECT_EQ(merged[0].second.bytes, Bytes(20));
  EXPECT_EQ(merged[0].second.start, Picoseconds(0));
  EXPECT_EQ(merged[0].second.end, Picoseconds(46));
  EXPECT_EQ(merged[1].second.start, Picoseconds(48));
  EXPECT_EQ(merged[2].first, 1);
  EXPECT_EQ(merged[2].second.merged, 0);
  EXPECT_EQ(merged[2].second.op, 2);
}

// Two executions are two, and few spans stay as they are.
TEST(RingSpans, RingsAreApart) {
  const Ring first{1, Picoseconds(0), Picoseconds(100)},
      second{1, Picoseconds(200), Picoseconds(300)};
  RingSpans spans;
  spans.Add(first, 2, 0, SpanOf(2, 0, 10));
  spans.Add(second, 2, 0, SpanOf(2, 200, 210));
  spans.Add(second, 2, 0, SpanOf(2, 220, 230));
  EXPECT_EQ(spans.Finish().size(), 3);
  for (const auto& [lane, span] : spans.Finish()) EXPECT_EQ(span.merged, 0);
}

sim::CounterSample Rate(int64_t time, double value) {
  sim::CounterSample sample;
  sample.time = Picoseconds(time);
  sample.value = value;
  return sample;
}

// A ring from 100 to 200 begins at the rate 8, which is 0 from 125 on, 4 from 150 on and 9 from 190
// on: the means of its halves are (25 * 8) / 50 and (40 * 4 + 10 * 9) / 50. After it 9 holds.
TEST(RingRates, MeansHaveTheSameIntegral) {
  const Ring ring{1, Picoseconds(100), Picoseconds(200)};
  RingRates rates;
  rates.Add(nullptr, 2, Rate(0, 8));
  rates.Add(&ring, 2, Rate(125, 0));
  rates.Add(&ring, 2, Rate(150, 4));
  rates.Add(&ring, 2, Rate(190, 9));
  const std::vector<sim::CounterSample>& thinned = rates.Finish();
  ASSERT_EQ(thinned.size(), 3);
  EXPECT_EQ(thinned[0].time, Picoseconds(100));
  EXPECT_DOUBLE_EQ(thinned[0].value, 4);
  EXPECT_EQ(thinned[1].time, Picoseconds(150));
  EXPECT_DOUBLE_EQ(thinned[1].value, 5);
  EXPECT_EQ(thinned[2].time, Picoseconds(200));
  EXPECT_DOUBLE_EQ(thinned[2].value, 9);
}

}  // namespace
}  // namespace tpusim::results
