// Constants of integer types of a few bits: a byte for each element, as in JAX's own modules.
#include <gtest/gtest.h>

#include <string>

#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {
namespace {

TEST(NarrowIntLiteral, TakesAByteForEachElement) {
  EXPECT_EQ(MakeIntLiteral(PrimitiveType::kS4, 5).s4s(), std::string("\x05"));
  EXPECT_EQ(MakeIntVectorLiteral(PrimitiveType::kS4, {5, 3}).s4s(), std::string("\x05\x03"));
  EXPECT_EQ(MakeIntLiteral(PrimitiveType::kU4, 15).u4s(), std::string("\x0f"));
  EXPECT_EQ(MakeIntLiteral(PrimitiveType::kS2, 1).s2s(), std::string("\x01"));
  EXPECT_EQ(MakeIntLiteral(PrimitiveType::kU2, 3).u2s(), std::string("\x03"));
}

TEST(NarrowIntLiteral, IsReadAsItWasMade) {
  for (const PrimitiveType type : {PrimitiveType::kS4, PrimitiveType::kS2, PrimitiveType::kS1}) {
    EXPECT_EQ(IntElements(MakeIntVectorLiteral(type, {0, -1})), (std::vector<int64_t>{0, -1}));
  }
  for (const PrimitiveType type : {PrimitiveType::kU4, PrimitiveType::kU2, PrimitiveType::kU1}) {
    EXPECT_EQ(IntElements(MakeIntVectorLiteral(type, {0, 1})), (std::vector<int64_t>{0, 1}));
  }
}

TEST(NarrowIntLiteral, StandsInText) {
  const std::string text =
      "HloModule m\n\nENTRY %main.1 () -> s4[] {\n  ROOT %c.1 = s4[] constant(-5)\n}\n";
  const auto parsed = ParseHloText(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ScalarIntConstant(*parsed->module->entry()->root()), -5);
  EXPECT_NE(ToString(*parsed->module).find("constant(-5)"), std::string::npos);
}

}  // namespace
}  // namespace tpusim::hlo
