#include "configs/limit.h"

#include <gtest/gtest.h>

#include <vector>

namespace tpusim {
namespace {

constexpr Limit kWidth{"search.width", 3, "orders", "tests"};
constexpr Limit kRounds{"search.rounds", 2, "rounds", "tests"};

TEST(Limit, CountsWhatIsLeftOutForTheInnermostScope) {
  kWidth.Reached();  // no scope: it is not counted
  std::vector<Record> outer_records, inner_records;
  LimitScope outer;
  kRounds.Reached();
  {
    LimitScope inner;
    kWidth.Reached(4);
    kRounds.Reached();
    kWidth.Reached();
    inner.AddTo(Records(&inner_records));
  }
  outer.AddTo(Records(&outer_records));
  ASSERT_EQ(inner_records.size(), 2);
  EXPECT_EQ(inner_records[0].subject, "search.width");
  EXPECT_EQ(inner_records[0].reason, &kLimitReached);
  EXPECT_EQ(std::get<int64_t>(inner_records[0].Find("limit")->value), 3);
  EXPECT_EQ(std::get<int64_t>(inner_records[0].Find("count")->value), 5);
  EXPECT_EQ(std::get<std::string>(inner_records[0].Find("what")->value), "orders");
  EXPECT_EQ(inner_records[1].subject, "search.rounds");
  ASSERT_EQ(outer_records.size(), 1);
  EXPECT_EQ(std::get<int64_t>(outer_records[0].Find("count")->value), 1);
}

TEST(Limit, AScopeGivesOtherValuesToWhatIsInside) {
  EXPECT_EQ(kWidth.most(), 3);
  LimitScope outer({{"search.width", 7}, {"search.rounds", 5}});
  EXPECT_EQ(kWidth.most(), 7);
  {
    LimitScope inner({{"search.width", 1}});
    EXPECT_EQ(kWidth.most(), 1);
    EXPECT_EQ(kRounds.most(), 5);
  }
  EXPECT_EQ(kWidth.most(), 7);
}

}  // namespace
}  // namespace tpusim
