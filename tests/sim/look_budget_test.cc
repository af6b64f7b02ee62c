// Looks for steady states cost little where they find none, and are there where they do.
#include "sim/look_budget.h"

#include <gtest/gtest.h>

namespace tpusim::sim {
namespace {

// A state of 20,000 numbers costs 250 instructions.
constexpr size_t kNumbers = 20'000;

// Looks of so many passes of 160 instructions each, of which all that are allowed are taken.
int64_t LooksAt(int64_t passes, int64_t saved_by_each) {
  LookBudget budget;
  int64_t looks = 0;
  for (int64_t pass = 0; pass < passes; ++pass) {
    if (!budget.Covers(160, 160 * pass)) continue;
    ++looks;
    budget.Spend(kNumbers);
    budget.Save(saved_by_each, 1);
  }
  return looks;
}

TEST(LookBudget, LooksThatFindNothingAreASmallPartOfTheWork) {
  // 16 million instructions, a 32nd of which are 500,000: 2,000 looks, and 64 first ones.
  EXPECT_EQ(LooksAt(100'000, 0), 2'064);
}

TEST(LookBudget, LooksThatPayAreAllThere) { EXPECT_EQ(LooksAt(100'000, 250), 100'000); }

TEST(LookBudget, LongPassesAreAlwaysLookedAt) {
  LookBudget budget;
  for (int64_t look = 0; look < 1'000; ++look) budget.Spend(kNumbers);
  EXPECT_EQ(budget.cost(), 250);
  EXPECT_FALSE(budget.Covers(1'999, 100'000));
  EXPECT_TRUE(budget.Covers(2'000, 100'000));
}

}  // namespace
}  // namespace tpusim::sim
