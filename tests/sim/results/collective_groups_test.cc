#include "sim/results/report/collective_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpusim::results {
namespace {

CollectiveReport AllGather(const std::string& name, const std::string& scope, int64_t count,
                           Picoseconds total, Picoseconds exposed) {
  CollectiveReport c;
  c.name = name;
  c.kind = "all-gather";
  c.algorithm = "ring of 4";
  c.scope = scope;
  c.bytes = Bytes(1024);
  c.count = count;
  c.total = total;
  c.exposed = exposed;
  c.expected = Picoseconds(10);
  c.bound = Picoseconds(4);
  c.exposed_by = {{"dependency", exposed, name + " waits"}};
  return c;
}

// Two layers take 30 + 10 in 3 + 1 executions, of which 12 + 6 are exposed; expected is the mean
// over executions, (3 * 10 + 1 * 18) / 4.
TEST(CollectiveGroups, LayersAreAddedUp) {
  std::vector<CollectiveReport> all = {
      AllGather("all-gather.1", "layers_0/mlp", 3, Picoseconds(30), Picoseconds(12)),
      AllGather("all-gather.2", "layers_1/mlp", 1, Picoseconds(10), Picoseconds(6))};
  all[1].expected = Picoseconds(18);
  const std::vector<CollectiveGroup> groups = GroupCollectives(all);
  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups[0].members, 2);
  const CollectiveReport& sum = groups[0].sum;
  EXPECT_EQ(sum.name, "all-gather.*");
  EXPECT_EQ(sum.scope, "layers_*/mlp");
  EXPECT_EQ(sum.count, 4);
  EXPECT_EQ(sum.total, Picoseconds(40));
  EXPECT_EQ(sum.exposed, Picoseconds(18));
  EXPECT_EQ(sum.expected, Picoseconds(12));
  EXPECT_EQ(sum.bound, Picoseconds(4));
  EXPECT_EQ(sum.bytes, Bytes(1024));
  ASSERT_EQ(sum.exposed_by.size(), 1);
  EXPECT_EQ(sum.exposed_by[0].what, "dependency");
  EXPECT_EQ(sum.exposed_by[0].text, "all-gather.* waits");
  EXPECT_EQ(sum.exposed_by[0].time, Picoseconds(18));
}

// Other scopes, bytes or algorithms are rows of their own; the longest comes first.
TEST(CollectiveGroups, OthersAreNot) {
  std::vector<CollectiveReport> all = {
      AllGather("all-gather.1", "layers_0/mlp", 1, Picoseconds(10), Picoseconds(1)),
      AllGather("all-gather.2", "layers_0/attention", 1, Picoseconds(20), Picoseconds(1)),
      AllGather("all-gather.3", "layers_0/mlp", 1, Picoseconds(30), Picoseconds(1)),
      AllGather("all-gather.4", "layers_0/mlp", 1, Picoseconds(40), Picoseconds(1))};
  all[2].bytes = Bytes(2048);
  all[3].algorithm = "line of 4";
  const std::vector<CollectiveGroup> groups = GroupCollectives(all);
  ASSERT_EQ(groups.size(), 4);
  EXPECT_EQ(groups[0].sum.name, "all-gather.4");
  EXPECT_EQ(groups[3].sum.name, "all-gather.1");
  EXPECT_EQ(groups[3].members, 1);
}

}  // namespace
}  // namespace tpusim::results
