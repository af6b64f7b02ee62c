#include "configs/quantity_text.h"

#include <gtest/gtest.h>

namespace tpusim::configs {
namespace {

double ValueOf(const char* text, const char* unit) {
  const auto parsed = ParseQuantity(text, unit);
  return parsed && !parsed->factor ? parsed->value : -1;
}

TEST(QuantityTextTest, NumbersAreInTheUnitAskedFor) {
  EXPECT_EQ(ValueOf("1.5e9", "hertz"), 1.5e9);
  EXPECT_EQ(ValueOf("7", "count"), 7);
}

TEST(QuantityTextTest, UnitsAreConverted) {
  EXPECT_EQ(ValueOf("1.5GHz", "hertz"), 1.5e9);
  EXPECT_EQ(ValueOf("90GB/s", "bytes_per_second"), 9e10);
  EXPECT_EQ(ValueOf("32MiB", "bytes"), 33'554'432);
  EXPECT_EQ(ValueOf("32 MB", "bytes"), 32e6);
  EXPECT_EQ(ValueOf("512B", "bytes"), 512);
  EXPECT_EQ(ValueOf("197TFLOP/s", "flops_per_second"), 1.97e14);
  EXPECT_EQ(ValueOf("1.5us", "ns"), 1500);
}

TEST(QuantityTextTest, OnlyUnitsOfTheKind) {
  EXPECT_EQ(ValueOf("1.5GHz", "bytes"), -1);
  EXPECT_EQ(ValueOf("90GB", "bytes_per_second"), -1);
  EXPECT_EQ(ValueOf("3Hz", "count"), -1);
  EXPECT_EQ(ValueOf("GB", "bytes"), -1);
  EXPECT_EQ(ValueOf("1MiHz", "hertz"), -1);
  EXPECT_EQ(ValueOf("", "bytes"), -1);
}

TEST(QuantityTextTest, Factors) {
  const auto parsed = ParseQuantity("0.5x", "hertz");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->factor);
  EXPECT_EQ(parsed->value, 0.5);
}

}  // namespace
}  // namespace tpusim::configs
