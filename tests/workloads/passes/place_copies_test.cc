#include "workloads/passes/copies/place_copies.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/passes/pass_test.h"

namespace tpusim::passes {
namespace {

// A loop of four iterations that carries a counter and arrays; `body` computes `next`.
std::string Loop(const std::string& carried, const std::string& reads, const std::string& next,
                 const std::string& initial, const std::string& fused = "") {
  return "HloModule m\n" + fused + R"(
body {
  c = )" +
         carried +
         R"( parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
)" + reads +
         "\n  ROOT t = " + carried + " tuple(j, " + next + R"()
}
condition {
  c = )" +
         carried + R"( parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY e {
)" + initial +
         "\n  start = s32[] constant(0)\n  init = " + carried +
         " tuple(start, xs)\n  ROOT w = " + carried +
         " while(init), condition=condition, body=body\n}";
}

int Copies(const std::string& text) {
  int copies = 0;
  for (size_t at = text.find(" copy("); at != std::string::npos; at = text.find(" copy(", at + 1)) {
    ++copies;
  }
  return copies;
}

constexpr char kMatrix[] = "(s32[], f32[512,512])";
constexpr char kMade[] = "  p = f32[512,512] parameter(0)\n  xs = f32[512,512] tanh(p)";

// A product reads all of the old array for every block of the new one.
TEST(PlaceCopies, AProductOfTheLastValueIsCopiedToItsPlace) {
  PassText test(Loop(kMatrix, R"(
  x = f32[512,512] get-tuple-element(c), index=1
  y = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
                     "y", kMade));
  EXPECT_TRUE(test.Run("copies").value());
  EXPECT_TRUE(HasLines(test.text(), "*dot(*\n*copy(*\n*tuple(*"));
}

// Element by element it is written where it is.
TEST(PlaceCopies, WhatFollowsTheLastValueIsMadeThere) {
  PassText test(Loop(kMatrix, R"(
  x = f32[512,512] get-tuple-element(c), index=1
  y = f32[512,512] tanh(x))",
                     "y", kMade));
  EXPECT_FALSE(test.Run("copies").value());
}

// So is what a fusion sums up beside it.
TEST(PlaceCopies, ASumBesideItDoesNotMatter) {
  const std::string fused = R"(
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
fused {
  p = f32[512,512] parameter(0)
  y = f32[512,512] tanh(p)
  zero = f32[] constant(0)
  s = f32[512] reduce(p, zero), dimensions={1}, to_apply=sum
  ROOT r = (f32[512,512], f32[512]) tuple(y, s)
})";
  std::string text = Loop("(s32[], f32[512,512], f32[512])", R"(
  x = f32[512,512] get-tuple-element(c), index=1
  f = (f32[512,512], f32[512]) fusion(x), kind=kLoop, calls=fused
  y = f32[512,512] get-tuple-element(f), index=0
  s = f32[512] get-tuple-element(f), index=1)",
                          "y, s",
                          "  p = f32[512,512] parameter(0)\n  a = f32[512,512] tanh(p)\n"
                          "  q = f32[512] parameter(1)\n  b = f32[512] tanh(q)",
                          fused);
  text.replace(text.find("start, xs"), 9, "start, a, b");
  PassText test(text);
  EXPECT_FALSE(test.Run("copies").value());
}

// Two arrays that change places: either would be overwritten while the other one needs it.
TEST(PlaceCopies, ASwapTakesTwoCopies) {
  std::string text = Loop("(s32[], f32[512,512], f32[512,512])", R"(
  x = f32[512,512] get-tuple-element(c), index=1
  y = f32[512,512] get-tuple-element(c), index=2
  z = f32[512,512] add(x, y))",
                          "y, z",
                          "  p = f32[512,512] parameter(0)\n  a = f32[512,512] tanh(p)\n"
                          "  b = f32[512,512] negate(p)");
  text.replace(text.find("start, xs"), 9, "start, a, b");
  PassText test(text);
  EXPECT_TRUE(test.Run("copies").value());
  EXPECT_EQ(Copies(test.text()), 2);
}

// ---- Results of the program ------------------------------------------------

// The stack that a scan reads is read to the end of the loop that makes the new one: if that is to
// be in its place, it is copied there (ys of xs). Without donation it stays where it is.
TEST(PlaceCopies, AScanThatMapsADonatedStackCopiesTheNewOne) {
  const auto text = [](const std::string& alias) {
    return "HloModule m" + alias + R"(
body {
  c = (s32[], f32[4,512], f32[4,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  xs = f32[4,512] get-tuple-element(c), index=1
  ys = f32[4,512] get-tuple-element(c), index=2
  zero = s32[] constant(0)
  x = f32[1,512] dynamic-slice(xs, i, zero), dynamic_slice_sizes={1,512}
  y = f32[1,512] tanh(x)
  d = f32[4,512] dynamic-update-slice(ys, y, i, zero)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[4,512], f32[4,512]) tuple(j, xs, d)
}
condition {
  c = (s32[], f32[4,512], f32[4,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = f32[4,512] parameter(0)
  start = s32[] constant(0)
  memory = f32[4,512] custom-call(), custom_call_target="AllocateBuffer"
  init = (s32[], f32[4,512], f32[4,512]) tuple(start, p, memory)
  w = (s32[], f32[4,512], f32[4,512]) while(init), condition=condition, body=body
  v = f32[4,512] get-tuple-element(w), index=2
  ROOT r = (f32[4,512]) tuple(v)
})";
  };
  PassText kept(text(""));
  EXPECT_FALSE(kept.Run("copies").value());
  PassText donated(text(", input_output_alias={ {0}: (0, {}, may-alias) }"));
  EXPECT_TRUE(donated.Run("copies").value());
  EXPECT_TRUE(HasLines(donated.text(), "*while(*\n*copy(*\n*tuple(*"));
  EXPECT_EQ(Copies(donated.text()), 1);
}

// An optimizer's step follows the weights element by element; what is read of them before is
// over. A reader of the old weights that needs the new ones keeps both alive.
TEST(PlaceCopies, AnUpdateOfDonatedWeights) {
  const auto text = [](const std::string& reader) {
    return R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  w = f32[512,512] parameter(0)
  x = f32[512,512] parameter(1)
  g = f32[512,512] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[512,512] subtract(w, g)
  o = f32[512,512] add()" +
           reader + R"()
  ROOT r = (f32[512,512], f32[512,512]) tuple(n, o)
})";
  };
  PassText over(text("g, w"));
  EXPECT_FALSE(over.Run("copies").value());
  PassText later(text("n, w"));
  EXPECT_TRUE(later.Run("copies").value());
  EXPECT_EQ(Copies(later.text()), 1);
}

}  // namespace
}  // namespace tpusim::passes
