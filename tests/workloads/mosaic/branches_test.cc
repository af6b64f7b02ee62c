#include "workloads/mosaic/branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/limit.h"

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;

const Weights kBranchWeights{0, 1, 1, 1, 1, 1};
constexpr Literal kLeft{1, true}, kRight{2, true};

Price Of(double valu) {
  Price price;
  price.stages.emplace_back();
  price.stages[0].valu = valu;
  return price;
}

double Valu(const PointCosts& costs) { return costs.always().Total().valu; }

// Says that no atom is open.
bool None(int) { return false; }

class Branches : public ::testing::Test {
 protected:
  double Dearest(const PointCosts& costs) { return Valu(costs.Decided(None, sets_)); }

  PointSets sets_;
  Points all_ = sets_.All(4);
  PointCosts costs_{kBranchWeights};
};

TEST_F(Branches, WhatAlwaysHappensCountsAtEveryPoint) {
  costs_.Charge(Of(3), all_, {});
  EXPECT_EQ(Valu(costs_), 12);
  EXPECT_EQ(Dearest(costs_), 12);
}

// Wherever in the body the two stand.
TEST_F(Branches, OfOppositesTheDearerOneCounts) {
  costs_.Charge(Of(3), all_, {kLeft});
  costs_.Charge(Of(1), all_, {});
  costs_.Charge(Of(5), all_, {!kLeft});
  EXPECT_EQ(Dearest(costs_), 4 * (1 + 5));
}

TEST_F(Branches, EqualConditionsHoldTogether) {
  costs_.Charge(Of(3), all_, {kLeft});
  costs_.Charge(Of(5), all_, {!kLeft});
  costs_.Charge(Of(4), all_, {kLeft});
  EXPECT_EQ(Dearest(costs_), 4 * 7);
}

TEST_F(Branches, OtherConditionsAreIndependent) {
  costs_.Charge(Of(3), all_, {kLeft});
  costs_.Charge(Of(5), all_, {kRight});
  EXPECT_EQ(Dearest(costs_), 4 * 8);
}

// An inner branch, and one on the same condition elsewhere.
TEST_F(Branches, ABranchInsideABranchNeedsBoth) {
  costs_.Charge(Of(9), all_, {kLeft, kRight});
  costs_.Charge(Of(4), all_, {!kRight});
  costs_.Charge(Of(6), all_, {!kLeft});
  EXPECT_EQ(Dearest(costs_), 4 * (6 + 4));
}

TEST_F(Branches, EveryPointGoesItsDearestWay) {
  const Points some = sets_.Some(all_, {0, 1});
  costs_.Charge(Of(3), all_, {kLeft});
  costs_.Charge(Of(5), some, {!kLeft});
  EXPECT_EQ(Dearest(costs_), 2 * 5 + 2 * 3);
}

TEST_F(Branches, OpenConditionsAreLeft) {
  costs_.Charge(Of(3), all_, {kLeft});
  costs_.Charge(Of(5), all_, {!kLeft});
  costs_.Charge(Of(7), all_, {!kLeft, kRight});
  const auto is_open = [](int atom) { return atom == kLeft.atom; };
  const PointCosts left = costs_.Decided(is_open, sets_);
  EXPECT_EQ(Valu(left), 0);
  EXPECT_EQ(Dearest(left), 4 * (5 + 7));
}

// The last of too many conditions that depend on each other are taken to hold and not to hold.
TEST_F(Branches, TooManyConditionsAllCount) {
  const LimitScope scope({{"mosaic.predicates", 1}});
  costs_.Charge(Of(3), all_, {kLeft, kRight});
  costs_.Charge(Of(5), all_, {kLeft, !kRight});
  costs_.Charge(Of(1), all_, {!kLeft});
  EXPECT_EQ(Dearest(costs_), 4 * (3 + 5));
}

TEST_F(Branches, PassesOfALoopHappenAtTheirPoints) {
  const Points passes = sets_.Of({0, 0, 1, 2}, {0, 1, 2, 3});
  PointCosts once(kBranchWeights);
  once.Charge(Of(1), passes, {});
  once.Charge(Of(2), passes, {kLeft});
  const PointCosts all = once.Gathered(all_, {0, 0, 1, 2}, sets_);
  EXPECT_EQ(Valu(all), 4);
  EXPECT_EQ(Dearest(all), 4 + 2 * 4);
}

TEST_F(Branches, LinearChangesKeepConditions) {
  costs_.Charge(Of(3), all_, {kLeft});
  costs_.Charge(Of(5), all_, {!kLeft});
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
