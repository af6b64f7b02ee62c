#include "sim/results/report/name_pattern.h"

#include <gtest/gtest.h>

#include <vector>

namespace tpusim::results {
namespace {

std::string PatternOf(const std::vector<std::string>& names) {
  NamePattern pattern;
  for (const std::string& name : names) pattern.Add(name);
  return pattern.text();
}

TEST(NamePatternTest, KeysForgetNumbers) {
  EXPECT_EQ(NumberlessKey("layers_3"), NumberlessKey("layers_12"));
  EXPECT_EQ(NumberlessKey("layers.*"), NumberlessKey("layers.7"));
  EXPECT_NE(NumberlessKey("layers_3"), NumberlessKey("layers.3"));
  EXPECT_NE(NumberlessKey("Block_3"), NumberlessKey("Block_"));
  EXPECT_EQ(NumberlessKey(""), "");
}

TEST(NamePatternTest, NumbersThatDifferBecomeStars) {
  EXPECT_EQ(PatternOf({"layers_3"}), "layers_3");
  EXPECT_EQ(PatternOf({"layers_3", "layers_3"}), "layers_3");
  EXPECT_EQ(PatternOf({"layers_3", "layers_12"}), "layers_*");
  EXPECT_EQ(PatternOf({"conv2d_1", "conv2d_2"}), "conv2d_*");
  EXPECT_EQ(PatternOf({"a1/b1", "a1/b2", "a2/b2"}), "a*/b*");
}

TEST(NamePatternTest, MembersAreDistinctNames) {
  NamePattern pattern;
  for (const char* name : {"f.1", "f.2", "f.1", "f.10"}) pattern.Add(name);
  EXPECT_EQ(pattern.members(), 3);
}

}  // namespace
}  // namespace tpusim::results
