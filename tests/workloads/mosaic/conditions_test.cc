#include "workloads/mosaic/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr Literal kTrue, kFalse{kTrueAtom, false}, kA{1, true}, kB{2, true};

TEST(Conditions, SumsDropWhatCancels) {
  const Linear i{{{1, 1}}, 4}, n{{{2, 3}}, 1};
  const Linear sum = Sum(i, 2, n, -1);
  EXPECT_THAT(sum.form, ElementsAre(Pair(1, 2), Pair(2, -3)));
  EXPECT_EQ(sum.constant, 7);
  EXPECT_THAT(Sum(i, 1, i, -1).form, IsEmpty());
}

TEST(Conditions, WhatHappensOnBothSidesOfAnAtomNeverHappens) {
  const When when = Both(*Both({}, kB), kA).value();
  EXPECT_THAT(when, ElementsAre(kA, kB));
  EXPECT_EQ(Both(when, kA), when);
  EXPECT_EQ(Both(when, !kB), std::nullopt);
  EXPECT_EQ(Both(when, kTrue), when);
  EXPECT_EQ(Both(when, kFalse), std::nullopt);
}

TEST(Conditions, LogicOfOneAtomAndOfConstantsIsDecided) {
  EXPECT_EQ(And(kA, kA), kA);
  EXPECT_EQ(And(kA, !kA), kFalse);
  EXPECT_EQ(And(kTrue, kA), kA);
  EXPECT_EQ(And(kA, kFalse), kFalse);
  EXPECT_EQ(And(kFalse, kTrue), kFalse);
  EXPECT_EQ(And(kA, kB), std::nullopt);
  EXPECT_EQ(Xor(kA, !kA), kTrue);
  EXPECT_EQ(Xor(kA, kA), kFalse);
  EXPECT_EQ(Xor(kA, kTrue), !kA);
  EXPECT_EQ(Xor(kFalse, !kA), !kA);
  EXPECT_EQ(Xor(kA, kB), std::nullopt);
}

}  // namespace
}  // namespace tpusim::mosaic
