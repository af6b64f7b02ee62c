#include "configs/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpusim {
namespace {

constexpr Reason kStored{
    "bake.stored", Action::kKept,
    "{subject} is stored: in {reader} it takes {more_us:.2f} us, {count} times"};
constexpr Reason kHot{"bake.hot", Action::kWarned, "{subject} is hot"};

TEST(Record, ASentenceIsFilledInByName) {
  std::vector<Record> all;
  Records(&all).Add(kStored, "cake", {{"count", 3}, {"reader", "oven"}, {"more_us", 1.256}});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].reason->id, "bake.stored");
  EXPECT_EQ(all[0].subject, "cake");
  EXPECT_EQ(std::get<int64_t>(all[0].Find("count")->value), 3);
  EXPECT_EQ(all[0].Find("price"), nullptr);
  EXPECT_EQ(ToString(all[0]), "cake is stored: in oven it takes 1.26 us, 3 times");
  EXPECT_EQ(Lines({all[0], all[0]}), ToString(all[0]) + "\n" + ToString(all[0]) + "\n");
}

TEST(Record, BracesInNamesAreText) {
  std::vector<Record> all;
  Records(&all).Add(kStored, "{count}", {{"reader", "{x}"}, {"more_us", 0.0}, {"count", 1}});
  EXPECT_EQ(ToString(all[0]), "{count} is stored: in {x} it takes 0.00 us, 1 times");
}

TEST(Record, DecisionsAreKeptWhereTheyAreAskedFor) {
  EXPECT_FALSE(Records().wanted());
  Records().Add(kStored, "cake");
  Records().Limit("bake.most", 2, "cakes");
  std::vector<Record> notes;
  const Records silent(nullptr, &notes);
  EXPECT_FALSE(silent.wanted());
  silent.Add(kStored, "cake");
  EXPECT_TRUE(notes.empty());
  silent.Add(kHot, "oven");
  EXPECT_THAT(TextsOf(notes, Action::kWarned), ::testing::ElementsAre("oven is hot"));
  EXPECT_THAT(TextsOf(notes, Action::kAssumed), ::testing::IsEmpty());
}

TEST(Record, ALimitIsOneRecordHoweverOftenItIsReached) {
  std::vector<Record> decisions, limits;
  const Records records(&decisions, &limits);
  records.Limit("bake.most", 8, "cakes");
  records.Limit("bake.rounds", 2, "rounds", 5);
  records.Limit("bake.most", 8, "cakes", 2);
  EXPECT_TRUE(decisions.empty());
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_EQ(limits[0].reason->action, Action::kLimited);
  EXPECT_EQ(ToString(limits[0]), "limit bake.most of 8 reached: 3 cakes left out");
  EXPECT_EQ(ToString(limits[1]), "limit bake.rounds of 2 reached: 5 rounds left out");
}

}  // namespace
}  // namespace tpusim
