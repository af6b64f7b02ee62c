#include "workloads/kernels/known_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "workloads/hlo/io/text_parser.h"

namespace tpusim::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

class KnownElementsTest : public ::testing::Test {
 protected:
  // Returns the elements of the value of that name, wherever it is.
  std::optional<std::vector<int64_t>> Of(const std::string& text, const std::string& name) {
    module_ = hlo::ParseHloText(text).value().module;
    const hlo::CallGraph calls(*module_);
    for (const hlo::Computation* computation : calls.control()) {
      for (const auto& i : computation->instructions()) {
        if (i->name() != name) continue;
        const std::optional<Known> known = KnownElements(*i, /*partition=*/1, calls);
        return known ? std::optional(known->elements) : std::nullopt;
      }
    }
    ADD_FAILURE() << "no " << name;
    return std::nullopt;
  }

  std::unique_ptr<hlo::Module> module_;
};

TEST_F(KnownElementsTest, ATableThatWasPrefetchedIsTheTable) {
  EXPECT_THAT(Of(R"(HloModule m
ENTRY e {
  c = s8[3] constant({4, 0, 2})
  s = (s8[3]{0:S(1)}, s8[3], u32[]) copy-start(c)
  ROOT d = s8[3]{0:S(1)} copy-done(s)
})",
                 "d"),
              Optional(ElementsAre(4, 0, 2)));
}

TEST_F(KnownElementsTest, AFusionIsItsRootWithItsOperands) {
  EXPECT_THAT(Of(R"(HloModule m
inner {
  p = s32[2] parameter(0)
  ROOT n = s32[2] add(p, p)
}
outer {
  p = s32[4] parameter(0)
  h = s32[2] slice(p), slice={[1:3]}
  ROOT f = s32[2] fusion(h), kind=kLoop, calls=inner
}
ENTRY e {
  c = s32[4] constant({5, 6, 7, 8})
  ROOT result = s32[2] fusion(c), kind=kLoop, calls=outer
})",
                 "result"),
              Optional(ElementsAre(12, 14)));
}

constexpr char kTwoLoops[] = R"(HloModule m
body {
  p = (s32[], s8[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  t = s8[2] get-tuple-element(p), index=1
  ROOT r = (s32[], s8[2]) tuple(n, NEXT)
}
condition {
  p = (s32[], s8[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ten = s32[] constant(10)
  ROOT l = pred[] compare(i, ten), direction=LT
}
body2 {
  p = (s32[], s8[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  inside = s8[2] get-tuple-element(p), index=1
  ROOT r = (s32[], s8[2]) tuple(n, inside)
}
ENTRY e {
  zero = s32[] constant(0)
  c = s8[2] constant({3, 1})
  a = (s32[], s8[2]) tuple(zero, c)
  w = (s32[], s8[2]) while(a), body=body, condition=condition
  behind = s8[2] get-tuple-element(w), index=1
  b = (s32[], s8[2]) tuple(zero, behind)
  ROOT v = (s32[], s8[2]) while(b), body=body2, condition=condition
})";

std::string TwoLoops(const std::string& next) {
  std::string text = kTwoLoops;
  return text.replace(text.find("NEXT"), 4, next);
}

TEST_F(KnownElementsTest, WhatALoopHandsOnIsKnownBehindItAndInTheNextOne) {
  EXPECT_THAT(Of(TwoLoops("t"), "behind"), Optional(ElementsAre(3, 1)));
  EXPECT_THAT(Of(TwoLoops("t"), "inside"), Optional(ElementsAre(3, 1)));
}

TEST_F(KnownElementsTest, WhatALoopChangesIsNotKnown) {
  std::string text = TwoLoops("u");
  text.insert(text.find("  ROOT r"), "  u = s8[2] add(t, t)\n");
  EXPECT_EQ(Of(text, "behind"), std::nullopt);
  EXPECT_EQ(Of(text, "inside"), std::nullopt);
}

TEST_F(KnownElementsTest, AnArgumentIsNotKnown) {
  EXPECT_EQ(Of(R"(HloModule m
ENTRY e {
  x = s8[2] parameter(0)
  ROOT n = s8[2] add(x, x)
})",
               "n"),
            std::nullopt);
}

}  // namespace
}  // namespace tpusim::kernels
