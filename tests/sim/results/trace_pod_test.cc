#include "sim/results/trace/trace_pod.h"

#include <gtest/gtest.h>

namespace tpusim::results {
namespace {

sim::Span Operation(int32_t op, int64_t start, int64_t end) {
  sim::Span span;
  span.op = op;
  span.start = Picoseconds(start);
  span.end = Picoseconds(end);
  return span;
}

// Two fusions with a gap of 5 are one slice, a third 20 later is another; the loop around them says
// nothing.
TEST(PodSummary, NeighboursThatSayTheSameAreOne) {
  isa::ProgramInfo info;
  for (const char* category : {"while", "loop fusion"}) {
    isa::OpInfo op;
    op.category = category;
    info.ops.push_back(op);
  }
  PodSummary summary(info, Picoseconds(10));
  summary.Add(Operation(0, 0, 100));
  summary.Add(Operation(1, 0, 30));
  summary.Add(Operation(1, 35, 60));
  summary.Add(Operation(1, 80, 100));
  ASSERT_EQ(summary.slices().size(), 2);
  EXPECT_EQ(summary.slices()[0].name, "compute");
  EXPECT_EQ(summary.slices()[0].start, Picoseconds(0));
  EXPECT_EQ(summary.slices()[0].end, Picoseconds(60));
  EXPECT_EQ(summary.slices()[1].start, Picoseconds(80));
}

}  // namespace
}  // namespace tpusim::results
