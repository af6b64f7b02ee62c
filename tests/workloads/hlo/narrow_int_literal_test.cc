// Constants of integer types of a few bits: a byte for each element, as in JAX's own modules.
#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace tpusim::hlo
