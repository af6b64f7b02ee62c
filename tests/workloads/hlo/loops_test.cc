#include "workloads/hlo/analysis/loops.h"

#include "absl/strings/str_replace.h"
#include "hlo_test_util.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

using ::testing::Optional;

// A loop over (i, j, n, a flag): i = 2, 4, 6, 8 and j = 9, 8, 7, 6; n is 5 all along. INDEX stands
// for what computes `x` from them in the body.
constexpr char kCountedLoop[] = R"(HloModule m
twice {
  p = s32[] parameter(0)
  q = s32[] parameter(1)
  two = s32[] constant(2)
  t = s32[] multiply(p, two)
  ROOT s = s32[] subtract(t, q)
}
body {
  c = (s32[], s32[], s32[], pred[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  j = s32[] get-tuple-element(c), index=1
  n = s32[] get-tuple-element(c), index=2
  flag = pred[] get-tuple-element(c), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  two = s32[] constant(2)
  three = s32[] constant(3)
  INDEX
  i.1 = s32[] add(two, i)
  j.1 = s32[] subtract(j, one)
  n.1 = s32[] copy(n)
  go = pred[] compare(x, n), direction=LT
  ROOT next = (s32[], s32[], s32[], pred[]) tuple(i.1, j.1, n.1, go)
}
condition {
  c = (s32[], s32[], s32[], pred[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  j = s32[] get-tuple-element(c), index=1
  n = s32[] get-tuple-element(c), index=2
  flag = pred[] get-tuple-element(c), index=3
  ten = s32[] constant(10)
  CONDITION
}
ENTRY e {
  start = s32[] constant(2)
  nine = s32[] constant(9)
  five = s32[] constant(5)
  flag = pred[] parameter(0)
  first = (s32[], s32[], s32[], pred[]) tuple(start, nine, five, flag)
  ROOT loop = (s32[], s32[], s32[], pred[]) while(first), condition=condition, body=body
})";

class LoopsTest : public ::testing::Test {
 protected:
  const LoopFacts& Loop(const std::string& index = "x = s32[] copy(i)",
                        const std::string& condition =
                            "ROOT less = pred[] compare(i, ten), direction=LT") {
    auto parsed = ParseHloText(
        absl::StrReplaceAll(kCountedLoop, {{"INDEX", index}, {"CONDITION", condition}}));
    EXPECT_TRUE(parsed.ok()) << Message(parsed.status());
    module_ = std::move(parsed->module);
    EXPECT_EQ(Message(Verify(*module_)), "");
    loops_ = std::make_unique<ModuleLoops>(*module_);
    return loops_->Of(*module_->entry()->root());
  }
  // The integer that `x` is.
  std::optional<Affine> Index(const std::string& index) {
    const LoopFacts& loop = Loop(index);
    for (const Instruction* i : loop.body().instructions()) {
      if (i->name() == "x") return loop.AffineOf(*i);
    }
    ADD_FAILURE() << "no x";
    return std::nullopt;
  }
  std::optional<int64_t> Trips(const std::string& condition) {
    return Loop("x = s32[] copy(i)", condition).trips();
  }

  std::unique_ptr<Module> module_;
  std::unique_ptr<ModuleLoops> loops_;
};

TEST_F(LoopsTest, WhatIterationsKeep) {
  const LoopFacts& loop = Loop();
  EXPECT_FALSE(IsInvariant(loop.loop(), 0));
  EXPECT_FALSE(ForwardsElement(loop.loop(), 0));
  // n has the same value, in a copy.
  EXPECT_TRUE(IsInvariant(loop.loop(), 2));
  EXPECT_FALSE(ForwardsElement(loop.loop(), 2));
  EXPECT_FALSE(IsInvariant(loop.loop(), 3));
}

TEST_F(LoopsTest, TheCounterIsWhatTheConditionCompares) {
  const LoopFacts& loop = Loop();
  EXPECT_EQ(loop.trips(), 4);  // 2 4 6 8
  ASSERT_TRUE(loop.counter());
  EXPECT_EQ(loop.counter()->index, 0);
  EXPECT_EQ(loop.counter()->start, 2);
  EXPECT_EQ(loop.counter()->step, 2);
  EXPECT_FALSE(Loop("x = s32[] copy(i)", "ROOT go = pred[] copy(flag)").counter());
}

TEST_F(LoopsTest, ConditionsCompareTwoAffineValues) {
  EXPECT_EQ(Trips("ROOT more = pred[] compare(j, n), direction=GT"), 4);      // 9 8 7 6
  EXPECT_EQ(Trips("ROOT less = pred[] compare(i, j), direction=LT"), 3);      // 2 9, 4 8, 6 7
  EXPECT_EQ(Trips("s = s32[] add(i, n)\n  ROOT less = pred[] compare(s, ten), direction=LE"),
            2);                                                               // 7 9
  EXPECT_EQ(Trips("ROOT other = pred[] compare(i, n), direction=NE"), std::nullopt);  // 4, then 6
  EXPECT_EQ(Trips("ROOT go = pred[] copy(flag)"), std::nullopt);
}

TEST_F(LoopsTest, IndicesAreAffine) {
  EXPECT_THAT(Index("x = s32[] copy(i)"), Optional(Affine{2, 2}));
  EXPECT_THAT(Index("x = s32[] subtract(three, j)"), Optional(Affine{1, -6}));
  EXPECT_THAT(Index("t = s32[] multiply(i, three)\n  x = s32[] add(t, n)"),
              Optional(Affine{6, 11}));
  EXPECT_THAT(Index("x = s32[] add(n, one)"), Optional(Affine{0, 6}));
  EXPECT_THAT(Index("x = s32[] fusion(j, i), kind=kCountedLoop, calls=twice"),
              Optional(Affine{-4, 16}));  // 2 (9 - k) - (2 + 2 k)
  // The product of two is none, and the flag is data.
  EXPECT_EQ(Index("x = s32[] multiply(i, j)"), std::nullopt);
  EXPECT_EQ(Index("x = s32[] convert(flag)"), std::nullopt);
}

// i - 3 is negative in the first iteration only, i - 9 in all four.
TEST_F(LoopsTest, IndicesFromTheEndAreSelected) {
  const std::string select =
      "b = s32[] constant(BACK)\n  at = s32[] subtract(i, b)\n"
      "  negative = pred[] compare(at, zero), direction=LT\n  end = s32[] add(at, n)\n"
      "  x = s32[] select(negative, end, at)";
  EXPECT_THAT(Index(absl::StrReplaceAll(select, {{"BACK", "2"}})), Optional(Affine{2, 0}));
  EXPECT_THAT(Index(absl::StrReplaceAll(select, {{"BACK", "9"}})), Optional(Affine{2, -2}));
  EXPECT_EQ(Index(absl::StrReplaceAll(select, {{"BACK", "3"}})), std::nullopt);
}

// 255 is a number of eight bits without a sign, 256 is none, nor is -1.
TEST_F(LoopsTest, IndicesThatWrapAroundAreNotAffine) {
  const std::string small = "t = u8[] convert(i)\n  b = u8[] constant(BY)\n"
                            "  w = u8[] OP(t, b)\n  x = s32[] convert(w)";
  const auto with = [&](const char* op, const char* by) {
    return absl::StrReplaceAll(small, {{"OP", op}, {"BY", by}});
  };
  EXPECT_THAT(Index(with("add", "247")), Optional(Affine{2, 249}));  // up to 8 + 247
  EXPECT_EQ(Index(with("add", "248")), std::nullopt);
  EXPECT_THAT(Index(with("subtract", "2")), Optional(Affine{2, 0}));
  EXPECT_EQ(Index(with("subtract", "3")), std::nullopt);
}

TEST_F(LoopsTest, AStatedCountReplacesTheCondition) {
  const LoopFacts& loop = Loop("x = s32[] copy(i)", "ROOT go = pred[] copy(flag)");
  const LoopFacts stated(loop.loop(), loops_->values(), 7);
  EXPECT_EQ(stated.trips(), 7);
  EXPECT_THAT(stated.AffineOf(*loop.body().root()->operand(1)), Optional(Affine{-1, 8}));
  EXPECT_EQ(loop.AffineOf(*loop.body().root()->operand(1)), std::nullopt);
}

}  // namespace
}  // namespace tpusim::hlo
