#include "workloads/remat/congruence.h"

#include "remat_testing.h"

namespace tpusim::remat {
namespace {

using ::testing::HasSubstr;

// Compares the operands of the root, the later one second; "" if they are equal.
std::string Difference(const std::string& entry, const std::string& computations = "") {
  const auto module = Parsed("HloModule m\n" + computations + "ENTRY main {\n" + entry + "\n}");
  hlo::ModuleLoops loops(*module);
  const Callers callers = CallersOf(*module);
  const auto difference = Congruence(callers, loops)
                              .Find(module->entry()->root()->operand(1),
                                    module->entry()->root()->operand(0));
  return difference ? difference->why : "";
}

std::string Twice(const std::string& first, const std::string& second) {
  return Difference("  x = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n  a = f32[8] " + first +
                    "\n  b = f32[8] " + second +
                    "\n  ROOT r = (f32[8], f32[8]) tuple(a, b)");
}

TEST(CongruenceTest, EqualOperationsOnEqualValues) {
  EXPECT_EQ(Twice("add(x, y)", "add(x, y)"), "");
  EXPECT_EQ(Twice("tanh(x)", "tanh(x), metadata={op_name=\"again\"}"), "");
  EXPECT_THAT(Twice("add(x, y)", "add(y, x)"), HasSubstr("not seen to be"));
  EXPECT_THAT(Twice("tanh(x)", "tanh(y)"), HasSubstr("not seen to be"));
  EXPECT_THAT(Twice("tanh(x)", "sine(x)"), HasSubstr("b is not seen to be a"));
  EXPECT_THAT(Twice("slice(x), slice={[0:8]}", "reverse(x), dimensions={0}"),
              HasSubstr("not seen to be"));
}

TEST(CongruenceTest, AttributesMakeADifference) {
  EXPECT_THAT(Twice("custom-call(x), custom_call_target=\"f\"",
                    "custom-call(x), custom_call_target=\"g\""),
              HasSubstr("not seen to be"));
  EXPECT_EQ(Twice("custom-call(x), custom_call_target=\"f\"",
                  "custom-call(x), custom_call_target=\"f\""),
            "");
  // An effect may differ each time.
  EXPECT_THAT(Twice("custom-call(x), custom_call_target=\"f\", custom_call_has_side_effect=true",
                    "custom-call(x), custom_call_target=\"f\", custom_call_has_side_effect=true"),
              HasSubstr("has an effect of its own"));
}

TEST(CongruenceTest, BarriersAndCopiesAreLookedThrough) {
  EXPECT_EQ(Difference(R"(  x = f32[8] parameter(0)
  a = f32[8] tanh(x)
  t = (f32[8], f32[8]) tuple(x, a)
  behind = (f32[8], f32[8]) opt-barrier(t)
  again = f32[8] get-tuple-element(behind), index=0
  copied = f32[8] copy(again)
  b = f32[8] tanh(copied)
  ROOT r = (f32[8], f32[8]) tuple(a, b))"),
            "");
}

// sum += STEP, three times.
std::string LoopText(const std::string& name, const std::string& step, const std::string& trips) {
  return absl::StrReplaceAll(R"(NAME {
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  sum = f32[8] get-tuple-element(c), index=1
  one = s32[] constant(1)
  more = f32[8] STEP(sum)
  i.1 = s32[] add(i, one)
  ROOT next = (s32[], f32[8]) tuple(i.1, more)
}
NAME_condition {
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(TRIPS)
  ROOT less = pred[] compare(i, n), direction=LT
}
)",
                             {{"NAME", name}, {"STEP", step}, {"TRIPS", trips}});
}

std::string LoopDifference(const std::string& start, const std::string& step,
                           const std::string& trips) {
  return Difference(
      absl::StrReplaceAll(R"(  x = f32[8] parameter(0)
  y = f32[8] negate(x)
  zero = s32[] constant(0)
  f = (s32[], f32[8]) tuple(zero, x)
  first = (s32[], f32[8]) while(f), condition=first_condition, body=first
  g = (s32[], f32[8]) tuple(zero, START)
  second = (s32[], f32[8]) while(g), condition=second_condition, body=second
  a = f32[8] get-tuple-element(first), index=1
  b = f32[8] get-tuple-element(second), index=1
  ROOT r = (f32[8], f32[8]) tuple(a, b))",
                          {{"START", start}}),
      LoopText("first", "tanh", "3") + LoopText("second", step, trips));
}

TEST(CongruenceTest, LoopsThatBeginEqualAndStepEqually) {
  EXPECT_EQ(LoopDifference("x", "tanh", "3"), "");
  EXPECT_THAT(LoopDifference("y", "tanh", "3"), HasSubstr("not seen to be"));
  EXPECT_THAT(LoopDifference("x", "sine", "3"), HasSubstr("not seen to be"));
  EXPECT_THAT(LoopDifference("x", "tanh", "4"), HasSubstr("not seen to be"));
}

TEST(CongruenceTest, BranchesOfEqualPredicates) {
  const auto differ = [](const std::string& predicate, const std::string& other) {
    return Difference(
        absl::StrReplaceAll(R"(  x = f32[8] parameter(0)
  p = pred[] parameter(1)
  q = pred[] parameter(2)
  a = f32[8] conditional(p, x, x), true_computation=t1, false_computation=f1
  b = f32[8] conditional(PRED, x, x), true_computation=t2, false_computation=f2
  ROOT r = (f32[8], f32[8]) tuple(a, b))",
                            {{"PRED", predicate}}),
        absl::StrReplaceAll(R"(t1 {
  v = f32[8] parameter(0)
  ROOT s = f32[8] tanh(v)
}
f1 {
  v = f32[8] parameter(0)
  ROOT s = f32[8] negate(v)
}
t2 {
  v = f32[8] parameter(0)
  ROOT s = f32[8] tanh(v)
}
f2 {
  v = f32[8] parameter(0)
  ROOT s = f32[8] OTHER(v)
}
)",
                            {{"OTHER", other}}));
  };
  EXPECT_EQ(differ("p", "negate"), "");
  EXPECT_THAT(differ("q", "negate"), HasSubstr("not seen to be"));
  EXPECT_THAT(differ("p", "abs"), HasSubstr("not seen to be"));
}

}  // namespace
}  // namespace tpusim::remat
