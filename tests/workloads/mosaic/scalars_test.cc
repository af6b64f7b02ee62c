#include "workloads/mosaic/scalars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mosaic_test_util.h"

namespace tpusim::mosaic {
namespace {

// Comparisons have the numbers of MLIR.
enum Predicate { kEq, kNe, kLt, kLe, kGt, kGe };

class ScalarsTest : public HandMade {
 protected:
  using Known = tpusim::mosaic::Scalar;

  Known Made(const std::string& name, const std::string& type, const std::vector<Known>& operands,
             const std::string& from = "i32",
             std::vector<std::pair<std::string, const Attribute*>> attributes = {}) {
    const std::vector<const Value*> values(operands.size(), Argument(HandMade::Scalar(from)));
    const Operation& operation =
        Add(name, values, HandMade::Scalar(type), std::move(attributes));
    return scalars_.Apply(operation, operands, 3);
  }
  Literal Compared(const Known& left, Predicate predicate, const Known& right) {
    return scalars_.Condition(
        Made("arith.cmpi", "i1", {left, right}, "i32", {{"predicate", Integer(predicate)}}));
  }
  Known Number(int64_t number) { return scalars_.Constant(number, false); }
  Known True() { return scalars_.Constant(1, true); }
  Known Between(double low, double high) {
    Known made = scalars_.Unknown(false);
    made.low = low;
    made.high = high;
    return made;
  }

  Scalars scalars_;
  Known i_ = scalars_.Unknown(false), n_ = scalars_.Unknown(false);
};

TEST_F(ScalarsTest, OppositeComparisonsAreOneAtom) {
  const Literal less = Compared(i_, kLt, n_);
  EXPECT_FALSE(less.IsConstant());
  EXPECT_EQ(Compared(n_, kGt, i_), less);
  EXPECT_EQ(Compared(i_, kGe, n_), !less);
  EXPECT_EQ(Compared(n_, kLe, i_), !less);
  EXPECT_NE(Compared(i_, kLe, n_).atom, less.atom);
}

TEST_F(ScalarsTest, ComparisonsLookThroughSums) {
  const Known next = Made("arith.addi", "i32", {i_, Number(1)});
  EXPECT_EQ(Compared(next, kLe, n_), Compared(i_, kLt, n_));
  EXPECT_EQ(Compared(next, kGt, i_), Literal{});
  EXPECT_EQ(Compared(next, kEq, i_), !Literal{});
  EXPECT_EQ(Compared(Made("arith.subi", "i32", {i_, n_}), kEq, Number(0)), Compared(n_, kEq, i_));
  EXPECT_EQ(Compared(i_, kNe, n_), !Compared(i_, kEq, n_));
}

TEST_F(ScalarsTest, BoundsDecideComparisons) {
  const Known some = Between(0, 7);
  EXPECT_EQ(Compared(some, kLt, Number(8)), Literal{});
  EXPECT_EQ(Compared(some, kGe, Number(8)), !Literal{});
  EXPECT_EQ(Compared(some, kEq, Number(-1)), !Literal{});
  EXPECT_FALSE(Compared(some, kLt, Number(7)).IsConstant());
  const Known least = Made("arith.minsi", "i32", {i_, Number(128)});
  EXPECT_EQ(least.high, 128);
  EXPECT_EQ(Compared(least, kGt, Number(128)), !Literal{});
}

TEST_F(ScalarsTest, AConditionBoundsWhatItLetsThrough) {
  const Literal few = Compared(i_, kLe, Number(40));
  EXPECT_EQ(scalars_.Refined(i_, few).high, 40);
  EXPECT_EQ(scalars_.Refined(i_, !few).low, 41);
  EXPECT_EQ(scalars_.Refined(n_, few).high, kInfinity);
  const Known left = Made("arith.subi", "i32", {Number(100), i_});
  EXPECT_EQ(scalars_.Refined(left, few).low, 60);
  EXPECT_EQ(scalars_.Refined(left, !few).high, 59);
  const Literal same = Compared(i_, kEq, Number(7));
  EXPECT_EQ(scalars_.Refined(i_, same).low, 7);
  EXPECT_EQ(scalars_.Refined(i_, same).high, 7);
  EXPECT_EQ(scalars_.Refined(i_, !same).high, kInfinity);
}

// A remainder by JAX: r + 16 where r is less than zero and not zero, else r.
TEST_F(ScalarsTest, AChoiceIsBoundedByItsCondition) {
  const Known rest = Made("arith.remsi", "i32", {i_, Number(16)});
  EXPECT_EQ(rest.low, -15);
  const auto compared = [&](Predicate predicate) {
    return Made("arith.cmpi", "i1", {rest, Number(0)}, "i32", {{"predicate", Integer(predicate)}});
  };
  const Known below = Made("arith.andi", "i1", {compared(kLt), compared(kNe)}, "i1");
  const Known raised = Made("arith.addi", "i32", {rest, Number(16)});
  EXPECT_EQ(scalars_.Refined(raised, scalars_.Condition(below)).high, 15);
  // Nothing is less than zero and zero.
  EXPECT_EQ(scalars_.Refined(rest, !scalars_.Condition(below)).low, 0);
}

TEST_F(ScalarsTest, ANegationIsTheOpposite) {
  const Known which = scalars_.Unknown(true);
  const Known opposite = Made("arith.xori", "i1", {which, True()}, "i1");
  EXPECT_EQ(scalars_.Condition(opposite), !scalars_.Condition(which));
  EXPECT_EQ(scalars_.Condition(Made("arith.andi", "i1", {which, opposite}, "i1")), !Literal{});
  EXPECT_EQ(scalars_.Condition(Made("arith.ori", "i1", {which, opposite}, "i1")), Literal{});
}

TEST_F(ScalarsTest, ABooleanOfSeveralIsAnAtomOfItsOwn) {
  const Known one = scalars_.Unknown(true), other = scalars_.Unknown(true);
  const Literal both = scalars_.Condition(Made("arith.andi", "i1", {one, other}, "i1"));
  EXPECT_NE(both.atom, scalars_.Condition(one).atom);
  EXPECT_EQ(scalars_.Condition(Made("arith.andi", "i1", {one, other}, "i1")), both);
  EXPECT_NE(scalars_.Condition(Made("arith.ori", "i1", {one, other}, "i1")).atom, both.atom);
}

// `pl.when` extends its condition to an integer, and compares that with zero.
TEST_F(ScalarsTest, ABooleanIsKnownBehindTheIntegerThatItBecame) {
  const Known which = scalars_.Unknown(true);
  const Known number = Made("arith.extui", "i32", {which}, "i1");
  EXPECT_EQ(Compared(number, kNe, Number(0)), scalars_.Condition(which));
  EXPECT_EQ(Compared(number, kEq, Number(0)), !scalars_.Condition(which));
  EXPECT_EQ(Compared(number, kEq, Number(1)), scalars_.Condition(which));
  EXPECT_EQ(Compared(number, kGt, Number(1)), !Literal{});
}

TEST_F(ScalarsTest, KnownNumbersAreEvaluatedAtEveryPoint) {
  const Known places = scalars_.Known(Column({0, 1, 2}), scalars_.Unknown(false));
  const Known twice = Made("arith.muli", "i32", {places, Number(2)});
  ASSERT_NE(twice.exact, nullptr);
  EXPECT_EQ((*twice.exact)[2], 4);
  EXPECT_EQ(twice.low, 0);
  EXPECT_EQ(twice.high, 4);
  EXPECT_EQ(twice.At({1, 2}).exact->Bounds(), std::pair(int64_t{2}, int64_t{4}));
}

TEST_F(ScalarsTest, AConjunctionIsFalseWhereOneOfItIs) {
  const Known known = scalars_.Known(Column({1, 0, 1}), scalars_.Unknown(true));
  const Known both = Made("arith.andi", "i1", {known, scalars_.Unknown(true)}, "i1");
  EXPECT_EQ(both.exact, nullptr);
  const auto [can_be_true, can_be_false] = both.Outcomes(3);
  EXPECT_EQ(can_be_true[0], 1);
  EXPECT_EQ(can_be_true[1], 0);
  EXPECT_EQ(can_be_false[1], 1);
}

TEST_F(ScalarsTest, AtomsBelongToTheLoopThatChangesThem) {
  ++scalars_.depth;
  const Known inside = scalars_.Unknown(true);
  EXPECT_EQ(scalars_.DepthOf(scalars_.Condition(inside).atom), 1);
  EXPECT_EQ(scalars_.DepthOf(Compared(i_, kLt, n_).atom), 0);
  EXPECT_EQ(scalars_.DepthOf(Compared(i_, kLt, scalars_.Counted(0, 9)).atom), 1);
  const Known load = scalars_.MadeOf("load", {i_}, false);
  EXPECT_EQ(scalars_.DepthOf(Compared(load, kEq, Number(0)).atom), 0);
  const Known changing = scalars_.MadeOf("load again", {i_}, false, /*changes=*/true);
  EXPECT_EQ(scalars_.DepthOf(Compared(changing, kEq, Number(0)).atom), 1);
}

TEST_F(ScalarsTest, EqualOperationsOnEqualOperandsAreEqual) {
  const Known one = Made("arith.maxsi", "i32", {i_, n_});
  EXPECT_EQ(Compared(one, kEq, Made("arith.maxsi", "i32", {i_, n_})), Literal{});
  EXPECT_FALSE(Compared(one, kEq, Made("arith.maxsi", "i32", {n_, i_})).IsConstant());
}

}  // namespace
}  // namespace tpusim::mosaic
