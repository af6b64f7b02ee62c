#include "workloads/hlo/ir/small_float.h"

#include <cmath>
#include <limits>

#include "hlo_test_util.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const PrimitiveType kTypes[] = {
    PrimitiveType::kF16,           PrimitiveType::kBf16,       PrimitiveType::kF8E5M2,
    PrimitiveType::kF8E4M3,        PrimitiveType::kF8E3M4,     PrimitiveType::kF8E4M3Fn,
    PrimitiveType::kF8E4M3B11Fnuz, PrimitiveType::kF8E5M2Fnuz, PrimitiveType::kF8E4M3Fnuz,
    PrimitiveType::kF4E2M1Fn,      PrimitiveType::kF6E3M2Fn,   PrimitiveType::kF6E2M3Fn,
    PrimitiveType::kF8E8M0Fnu};

double Rounded(PrimitiveType type, double value) {
  return RealElements(MakeScalarLiteral(type, value))->front();
}

TEST(SmallFloatTest, EveryPatternIsTheNearestToItsValue) {
  for (const PrimitiveType type : kTypes) {
    const SmallFloat format = *SmallFloatOf(type);
    for (uint32_t bits = 0; bits < 1u << BitWidth(type); ++bits) {
      const double value = DecodeSmallFloat(bits, format);
      if (std::isnan(value)) continue;
      EXPECT_EQ(EncodeSmallFloat(value, format), bits) << PrimitiveTypeName(type) << " " << value;
    }
  }
}

TEST(SmallFloatTest, LargestNumbers) {
  // (2 - 2^-mantissa) * 2^(largest exponent - bias), less where the top pattern is a NaN.
  EXPECT_EQ(Rounded(PrimitiveType::kF8E5M2, 57344), 57344);      // 1.75 * 2^15
  EXPECT_EQ(Rounded(PrimitiveType::kF8E4M3, 240), 240);          // 1.875 * 2^7
  EXPECT_EQ(Rounded(PrimitiveType::kF8E4M3Fn, 448), 448);        // 1.75 * 2^8
  EXPECT_EQ(Rounded(PrimitiveType::kF8E3M4, 15.5), 15.5);        // 1.9375 * 2^3
  EXPECT_EQ(Rounded(PrimitiveType::kF8E5M2Fnuz, 57344), 57344);  // 1.75 * 2^15
  EXPECT_EQ(Rounded(PrimitiveType::kF8E4M3Fnuz, 240), 240);      // 1.875 * 2^7
  EXPECT_EQ(Rounded(PrimitiveType::kF8E4M3B11Fnuz, 30), 30);     // 1.875 * 2^4
  EXPECT_EQ(Rounded(PrimitiveType::kF4E2M1Fn, 6), 6);            // 1.5 * 2^2
  EXPECT_EQ(Rounded(PrimitiveType::kF6E3M2Fn, 28), 28);          // 1.75 * 2^4
  EXPECT_EQ(Rounded(PrimitiveType::kF6E2M3Fn, 7.5), 7.5);        // 1.875 * 2^2
  EXPECT_EQ(Rounded(PrimitiveType::kF8E8M0Fnu, std::ldexp(1, 127)), std::ldexp(1, 127));
}

TEST(SmallFloatTest, BeyondThem) {
  EXPECT_EQ(Rounded(PrimitiveType::kF8E5M2, 1e6), kInfinity);
  EXPECT_TRUE(std::isnan(Rounded(PrimitiveType::kF8E4M3Fn, 1e6)));
  EXPECT_TRUE(std::isnan(Rounded(PrimitiveType::kF8E4M3Fnuz, -1e6)));
  EXPECT_EQ(Rounded(PrimitiveType::kF4E2M1Fn, -100), -6);
  EXPECT_TRUE(std::isnan(Rounded(PrimitiveType::kF8E8M0Fnu, -1)));
}

TEST(SmallFloatTest, HalvesGoToEven) {
  // f4e2m1fn is 0, 0.5, 1, 1.5, 2, 3, 4, 6.
  EXPECT_EQ(Rounded(PrimitiveType::kF4E2M1Fn, 2.5), 2);
  EXPECT_EQ(Rounded(PrimitiveType::kF4E2M1Fn, 3.5), 4);
  EXPECT_EQ(Rounded(PrimitiveType::kF4E2M1Fn, 0.25), 0);
  EXPECT_EQ(Rounded(PrimitiveType::kF4E2M1Fn, 0.75), 1);
  // e8m0 has powers of two only: 3 is half way between 2 and 4, 2.9 is not.
  EXPECT_EQ(Rounded(PrimitiveType::kF8E8M0Fnu, 2.9), 2);
  EXPECT_EQ(Rounded(PrimitiveType::kF8E8M0Fnu, 3.1), 4);
}

TEST(SmallFloatTest, ConstantsAreMadeOfEveryTypeOfNumbers) {
  for (const PrimitiveType type : kTypes) {
    EXPECT_EQ(Rounded(type, 1), 1) << PrimitiveTypeName(type);
    EXPECT_EQ(MakeScalarLiteral(type, 1).shape().element_type(), static_cast<int>(type));
  }
  TestModule t;
  for (const PrimitiveType type : {PrimitiveType::kC64, PrimitiveType::kC128}) {
    EXPECT_EQ(ScalarConstant(*AddConstant(t.entry(), type, 2)), 2.0);
  }
}

TEST(SmallFloatTest, StandInText) {
  for (const PrimitiveType type : kTypes) {
    if (type == PrimitiveType::kF8E8M0Fnu) continue;  // no negative numbers
    const std::string text = fmt::format(
        "HloModule m\n\nENTRY %e () -> {0}[2] {{\n  ROOT %c = {0}[2]{{0}} constant({{1.5, "
        "-1}})\n}}\n",
        PrimitiveTypeName(type));
    const auto parsed = ParseHloText(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_THAT(RealElements(parsed->module->entry()->root()->attrs().literal()),
                ::testing::Optional(::testing::ElementsAre(1.5, -1)))
        << PrimitiveTypeName(type);
  }
}

}  // namespace
}  // namespace tpusim::hlo
