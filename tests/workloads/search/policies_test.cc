#include "workloads/search/policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/limit.h"

namespace tpusim::search {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<remat::NameUse> Names(const std::vector<std::pair<std::string, int64_t>>& bytes) {
  std::vector<remat::NameUse> names;
  for (const auto& [name, size] : bytes) {
    remat::NameUse& use = names.emplace_back();
    use.name = name;
    use.bytes = Bytes(size);
    use.values = use.recomputed = 1;
  }
  return names;
}

std::vector<std::string> Texts(const std::vector<remat::StatedPolicy>& policies) {
  std::vector<std::string> texts;
  for (const remat::StatedPolicy& policy : policies) texts.push_back(policy.text);
  return texts;
}

TEST(PoliciesToTry, OfFewNamesAll) {
  const auto all = PoliciesToTry(Names({{"a", 1}, {"b", 2}}), {});
  ASSERT_THAT(all, SizeIs(9));
  EXPECT_THAT(all[0], IsEmpty());
  EXPECT_THAT(Texts(all[1]), ElementsAre("a=saved"));
  EXPECT_THAT(Texts(all[8]), ElementsAre("a=offloaded", "b=offloaded"));
}

TEST(PoliciesToTry, OfSomeWhatIsSaved) {
  const auto all = PoliciesToTry(Names({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}), {});
  ASSERT_THAT(all, SizeIs(16));
  EXPECT_THAT(Texts(all[15]), ElementsAre("a=saved", "b=saved", "c=saved", "d=saved"));
}

TEST(PoliciesToTry, OfManyTheSmallestFirst) {
  const auto all =
      PoliciesToTry(Names({{"a", 6}, {"b", 5}, {"c", 4}, {"d", 3}, {"e", 2}, {"f", 1}}), {});
  ASSERT_THAT(all, SizeIs(7));
  EXPECT_THAT(Texts(all[2]), ElementsAre("f=saved", "e=saved"));
}

// 3^3 = 27 combinations are within 32. 3^6 = 729 are not, nor are 2^6 = 64: of six names one more
// is saved each time, in 7 of the 729.
TEST(PoliciesToTry, LimitsAreCounted) {
  const LimitScope scope;
  std::vector<Record> reached;
  EXPECT_THAT(PoliciesToTry(Names({{"a", 1}, {"b", 2}, {"c", 3}}), {}), SizeIs(27));
  scope.AddTo(Records(nullptr, &reached));
  EXPECT_THAT(reached, IsEmpty());
  PoliciesToTry(Names({{"a", 6}, {"b", 5}, {"c", 4}, {"d", 3}, {"e", 2}, {"f", 1}}), {});
  scope.AddTo(Records(nullptr, &reached));
  ASSERT_THAT(reached, SizeIs(1));
  EXPECT_EQ(ToString(reached[0]),
            "limit shard.policies of 32 reached: 722 combinations of policies left out");
}

TEST(PoliciesToTry, WhatIsStatedOrCannotBeStays) {
  std::vector<remat::NameUse> names = Names({{"a", 1}, {"b", 2}, {"c", 3}});
  names[1].recomputed = 0;
  names[2].refused = "it is in a branch";
  const auto stated = remat::ParseStatedPolicy("a=recomputed").value();
  EXPECT_THAT(PoliciesToTry(names, {stated}), ElementsAre(IsEmpty()));
}

}  // namespace
}  // namespace tpusim::search
