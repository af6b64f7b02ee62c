#include "workloads/mosaic/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpusim::mosaic {
namespace {

using ::testing::IsEmpty;

const Linear kI{{{0, 1}}, 0}, kN{{{1, 1}}, 0};

TEST(Conditions, OppositesAreStatementsAboutOneForm) {
  const Predicate less = Within(Sum(kI, 1, kN, -1), ReachOf("lt"));     // i < n
  const Predicate no_more = Within(Sum(kN, 1, kI, -1), ReachOf("le"));  // n <= i
  EXPECT_EQ(less.yes, no_more.no);
  EXPECT_EQ(less.no, no_more.yes);
  EXPECT_THAT(Both(less.yes, no_more.yes), IsEmpty());
}

TEST(Conditions, ConstantsAreDecided) {
  const Linear one{{}, 1};
  EXPECT_TRUE(IsAlways(Within(one, ReachOf("gt")).yes));
  EXPECT_TRUE(IsAlways(Within(one, ReachOf("eq")).no));
  // i + 1 is more than i.
  EXPECT_TRUE(IsAlways(Within(Sum(Sum(kI, 1, one, 1), 1, kI, -1), ReachOf("gt")).yes));
}

TEST(Conditions, CubesOfACombinationExcludeEachOther) {
  const Predicate a = Within(kI, ReachOf("gt")), b = Within(kN, ReachOf("gt"));
  const Predicate either = *Combined("or", a, b);
  ASSERT_EQ(either.yes.size(), 2);
  EXPECT_THAT(Both({either.yes[0]}, {either.yes[1]}), IsEmpty());
  EXPECT_THAT(Both(either.yes, either.no), IsEmpty());
  const Predicate differ = *Combined("xor", a, a);
  EXPECT_THAT(differ.yes, IsEmpty());
}

}  // namespace
}  // namespace tpusim::mosaic
