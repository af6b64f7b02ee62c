#include "workloads/mosaic/branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;

const Weights kBranchWeights{0, 1, 1, 1, 1, 1};
const Linear kLeft{{{0, 1}}, 0}, kRight{{{1, 1}}, 0};

Price Of(double valu) {
  Price price;
  price.stages.emplace_back();
  price.stages[0].valu = valu;
  return price;
}

double Valu(const PointCosts& costs) { return costs.always().Total().valu; }

// All forms are decided.
bool None(const Form&) { return false; }

class Branches : public ::testing::Test {
 protected:
  double Dearest(const PointCosts& costs) { return Valu(costs.Decided(None, sets_)); }

  PointSets sets_;
  Points all_ = sets_.All(4);
  PointCosts costs_{kBranchWeights};
};

TEST_F(Branches, WhatAlwaysHappensCountsAtEveryPoint) {
  costs_.Charge(Of(3), all_, Always());
  EXPECT_EQ(Valu(costs_), 12);
  costs_.Charge(Of(3), all_, Never());
  EXPECT_EQ(Dearest(costs_), 12);
}

TEST_F(Branches, OfOppositesTheDearerOneCounts) {
  const Predicate less = Within(kLeft, ReachOf("lt"));
  costs_.Charge(Of(3), all_, less.yes);
  costs_.Charge(Of(5), all_, less.no);
  EXPECT_EQ(Dearest(costs_), 4 * 5);
}

// `pl.when(i < n)` and `pl.when(n <= i)`, wherever they stand.
TEST_F(Branches, OppositesNeedNotBeOneBranch) {
  costs_.Charge(Of(3), all_, Within(Sum(kLeft, 1, kRight, -1), ReachOf("lt")).yes);
  costs_.Charge(Of(1), all_, Always());
  costs_.Charge(Of(5), all_, Within(Sum(kRight, 1, kLeft, -1), ReachOf("le")).yes);
  EXPECT_EQ(Dearest(costs_), 4 * (1 + 5));
}

TEST_F(Branches, PredicatesOnOtherNumbersHoldTogether) {
  costs_.Charge(Of(3), all_, Within(kLeft, ReachOf("lt")).yes);
  costs_.Charge(Of(5), all_, Within(kRight, ReachOf("lt")).yes);
  EXPECT_EQ(Dearest(costs_), 4 * 8);
}

TEST_F(Branches, OfSeveralIntervalsOneHolds) {
  // i == 0, i == 1, i > 1: a kernel's first, second and other steps.
  costs_.Charge(Of(2), all_, Within(kLeft, ReachOf("eq")).yes);
  costs_.Charge(Of(7), all_, Within(Sum(kLeft, 1, Linear{{}, -1}, 1), ReachOf("eq")).yes);
  costs_.Charge(Of(3), all_, Within(Sum(kLeft, 1, Linear{{}, -1}, 1), ReachOf("gt")).yes);
  costs_.Charge(Of(1), all_, Within(kLeft, ReachOf("ge")).yes);  // with any of them
  EXPECT_EQ(Dearest(costs_), 4 * (7 + 1));
}

TEST_F(Branches, EveryPointGoesItsDearestWay) {
  const Points some = sets_.Some(all_, {0, 1});
  const Predicate less = Within(kLeft, ReachOf("lt"));
  costs_.Charge(Of(3), all_, less.yes);
  costs_.Charge(Of(5), some, less.no);
  EXPECT_EQ(Dearest(costs_), 2 * 5 + 2 * 3);
}

TEST_F(Branches, OpenFormsAreLeft) {
  const Predicate less = Within(kLeft, ReachOf("lt"));
  costs_.Charge(Of(3), all_, less.yes);
  costs_.Charge(Of(5), all_, less.no);
  const auto is_open = [](const Form& form) { return form == kLeft.form; };
  const PointCosts left = costs_.Decided(is_open, sets_);
  EXPECT_EQ(Valu(left), 0);
  EXPECT_EQ(Dearest(left), 4 * 5);
}

TEST_F(Branches, PassesOfALoopHappenAtTheirPoints) {
  const Points passes = sets_.Of({0, 0, 1, 2}, {0, 1, 2, 3});
  PointCosts once(kBranchWeights);
  once.Charge(Of(1), passes, Always());
  once.Charge(Of(2), passes, Within(kLeft, ReachOf("lt")).yes);
  const PointCosts all = once.Gathered(all_, {0, 0, 1, 2}, sets_);
  EXPECT_EQ(Valu(all), 4);
  EXPECT_EQ(Dearest(all), 4 + 2 * 4);
}

TEST_F(Branches, LinearChangesKeepConditions) {
  const Predicate less = Within(kLeft, ReachOf("lt"));
  costs_.Charge(Of(3), all_, less.yes);
  costs_.Charge(Of(5), all_, less.no);
  const PointCosts twice = costs_.Mapped([](const Price& price) { return price.TimesOf(2); });
  EXPECT_EQ(Dearest(twice), 2 * 4 * 5);
  PointCosts sum(kBranchWeights);
  sum.Add(costs_);
  sum.Add(twice);
  EXPECT_EQ(Dearest(sum), 3 * 4 * 5);
}

TEST_F(Branches, TheSamePointsAreTheSameSet) {
  EXPECT_EQ(sets_.Some(all_, {0, 2}), sets_.Some(all_, {0, 2}));
  EXPECT_NE(sets_.Some(all_, {0, 2}), sets_.Some(all_, {0, 3}));
  EXPECT_EQ(sets_.Some(all_, {0, 1, 2, 3}), all_);
  EXPECT_THAT(sets_.Some(all_, {1, 3})->index, ElementsAre(1, 3));
}

}  // namespace
}  // namespace tpusim::mosaic
