// Layers that are written out one by one: where they are in the order of what is done.
#include "workloads/lowering/repeated_runs.h"

#include <gtest/gtest.h>

namespace tpusim::lowering {
namespace {

constexpr int32_t kBefore = 3;   // done before the layers
constexpr int32_t kLength = 20;  // done in a layer

// So many layers after something else; one may be `other`.
std::vector<int32_t> Layers(int32_t layers, int32_t other = -1) {
  std::vector<int32_t> done = {1000, 1001, 1002};
  for (int32_t layer = 0; layer < layers; ++layer) {
    for (int32_t n = 0; n < kLength; ++n) {
      // Some things are done several times in a layer.
      done.push_back(layer == other && n == 7 ? 2000 : n % 15);
    }
  }
  done.push_back(1003);
  return done;
}

TEST(RepeatedRuns, AreFound) {
  const std::vector<RepeatedRun> found = FindRepeatedRuns(Layers(12));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].begin, kBefore);
  EXPECT_EQ(found[0].length, kLength);
  EXPECT_EQ(found[0].count, 12);
}

TEST(RepeatedRuns, TheFirstLayerMayDiffer) {
  const std::vector<RepeatedRun> found = FindRepeatedRuns(Layers(12, /*other=*/0));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].begin, kBefore + 8);  // after what is done only there
  EXPECT_EQ(found[0].count, 11);
}

TEST(RepeatedRuns, EndWhereSomethingElseIsDone) {
  EXPECT_TRUE(FindRepeatedRuns({}).empty());
  EXPECT_TRUE(FindRepeatedRuns(Layers(3)).empty());
  EXPECT_TRUE(FindRepeatedRuns(Layers(9, /*other=*/4)).empty());
  const std::vector<RepeatedRun> found = FindRepeatedRuns(Layers(30, /*other=*/15));
  ASSERT_EQ(found.size(), 2);
  EXPECT_LE(found[0].begin + found[0].length * static_cast<size_t>(found[0].count),
            kBefore + 15 * kLength + 7);
  EXPECT_EQ(found[1].begin, kBefore + 15 * kLength + 8);
  EXPECT_EQ(found[1].count, 14);
}

// A few small things in a row are no layers.
TEST(RepeatedRuns, ShortRunsAreExecuted) {
  EXPECT_TRUE(FindRepeatedRuns(std::vector<int32_t>(20, 5)).empty());
  const std::vector<RepeatedRun> found = FindRepeatedRuns(std::vector<int32_t>(100, 5));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].length, 1);
  EXPECT_EQ(found[0].count, 100);
}

}  // namespace
}  // namespace tpusim::lowering
