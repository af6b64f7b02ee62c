#include "workloads/hlo/analysis/underlying.h"

#include "hlo_test_util.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

std::string UnderlyingName(const std::string& steps, int64_t barriers = 0) {
  const auto parsed = ParseHloText("HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n" + steps +
                                   "\n}");
  EXPECT_TRUE(parsed.ok()) << Message(parsed.status());
  std::vector<Instruction*> passed;
  const std::string name = Underlying(parsed->module->entry()->root(), &passed)->name();
  EXPECT_EQ(std::ssize(passed), barriers) << steps;
  return name;
}

TEST(UnderlyingTest, WhatLeavesAValueAsItIs) {
  EXPECT_EQ(UnderlyingName("ROOT y = f32[8] copy(x)"), "x");
  EXPECT_EQ(UnderlyingName("ROOT y = f32[8] opt-barrier(x)", 1), "x");
  EXPECT_EQ(UnderlyingName("ROOT y = f32[8] custom-call(x), custom_call_target=\"Sharding\""), "x");
  EXPECT_EQ(UnderlyingName("ROOT y = f32[8] custom-call(x), custom_call_target=\"MoveToHost\""),
            "x");
  EXPECT_EQ(UnderlyingName("n = f32[8] negate(x)\n  t = (f32[8], f32[8]) tuple(x, n)\n  b = "
                           "(f32[8], f32[8]) opt-barrier(t)\n  ROOT y = f32[8] "
                           "get-tuple-element(b), index=1",
                           1),
            "n");
  EXPECT_EQ(UnderlyingName("s = (f32[8]{0:S(1)}, f32[8], u32[]) copy-start(x)\n  ROOT y = "
                           "f32[8]{0:S(1)} copy-done(s)"),
            "x");
}

// A float has 8 bits of exponent and 23 of mantissa: fewer change it.
TEST(UnderlyingTest, ARoundingToTheOwnPrecisionChangesNothing) {
  EXPECT_EQ(UnderlyingName("ROOT y = f32[8] reduce-precision(x), exponent_bits=8, "
                           "mantissa_bits=23"),
            "x");
  EXPECT_EQ(UnderlyingName("ROOT y = f32[8] reduce-precision(x), exponent_bits=8, "
                           "mantissa_bits=22"),
            "y");
  EXPECT_EQ(UnderlyingName("b = bf16[8] convert(x)\n  ROOT y = bf16[8] reduce-precision(b), "
                           "exponent_bits=8, mantissa_bits=7"),
            "b");
}

TEST(UnderlyingTest, WhatMakesAnotherValue) {
  EXPECT_EQ(UnderlyingName("ROOT y = f32[2,4] bitcast(x)"), "y");
  EXPECT_EQ(UnderlyingName("ROOT y = f32[2,4] reshape(x)"), "y");
  EXPECT_EQ(UnderlyingName("ROOT y = f32[8] custom-call(x), custom_call_target=\"other\""), "y");
}

}  // namespace
}  // namespace tpusim::hlo
