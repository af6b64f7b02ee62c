#include <cmath>
#include <limits>

#include "hlo_test_util.h"
#include "workloads/hlo/ir/shape_proto.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(LiteralTest, IntegersRoundTrip) {
  TestModule t;
  for (PrimitiveType type :
       {PrimitiveType::kS8, PrimitiveType::kS16, PrimitiveType::kS32, PrimitiveType::kS64}) {
    EXPECT_EQ(ScalarIntConstant(*AddIntConstant(t.entry(), type, -5)), -5);
  }
  for (PrimitiveType type :
       {PrimitiveType::kU8, PrimitiveType::kU16, PrimitiveType::kU32, PrimitiveType::kU64}) {
    EXPECT_EQ(ScalarIntConstant(*AddIntConstant(t.entry(), type, 200)), 200);
  }
  EXPECT_EQ(ScalarIntConstant(*AddIntConstant(t.entry(), PrimitiveType::kPred, 1)), 1);
  EXPECT_THAT(IntElements(MakeIntVectorLiteral(PrimitiveType::kS32, {3, -1})),
              Optional(ElementsAre(3, -1)));
}

TEST(LiteralTest, FloatsRoundTrip) {
  TestModule t;
  for (PrimitiveType type :
       {PrimitiveType::kF16, PrimitiveType::kBf16, PrimitiveType::kF32, PrimitiveType::kF64}) {
    for (double value : {0.0, 1.0, -0.5, 1.5, 1024.0}) {
      EXPECT_EQ(ScalarConstant(*AddConstant(t.entry(), type, value)), value);
    }
  }
  // Floats are no integers, integers are reals.
  EXPECT_EQ(ScalarIntConstant(*AddConstant(t.entry(), PrimitiveType::kF32, 1)), std::nullopt);
  EXPECT_EQ(ScalarConstant(*AddIntConstant(t.entry(), PrimitiveType::kS32, 7)), 7.0);
}

TEST(LiteralTest, ComplexNumbersMayBeReal) {
  TestModule t;
  pb::LiteralProto one;
  *one.mutable_shape() = ShapeToProto(MakeShape(PrimitiveType::kC64, {}));
  one.add_c64s(1);
  one.add_c64s(0);
  EXPECT_EQ(ScalarConstant(*AddLiteral(t.entry(), one, "one")), 1.0);
  one.set_c64s(1, 2);
  EXPECT_EQ(ScalarConstant(*AddLiteral(t.entry(), one, "more")), std::nullopt);
}

TEST(LiteralTest, RoundingOfSmallFloats) {
  const auto round_trip = [](PrimitiveType type, double value) {
    return RealElements(MakeScalarLiteral(type, value))->front();
  };
  // bf16 has 8 bits of mantissa: between 256 and 512 it counts by 2.
  EXPECT_EQ(round_trip(PrimitiveType::kBf16, 257), 256);  // half: to even
  EXPECT_EQ(round_trip(PrimitiveType::kBf16, 259), 260);
  // f16: between 2048 and 4096 it counts by 2; the least subnormal is 2^-24.
  EXPECT_EQ(round_trip(PrimitiveType::kF16, 2049), 2048);
  EXPECT_EQ(round_trip(PrimitiveType::kF16, 2051), 2052);
  EXPECT_EQ(round_trip(PrimitiveType::kF16, std::ldexp(1, -24)), std::ldexp(1, -24));
  EXPECT_EQ(round_trip(PrimitiveType::kF16, 65504), 65504);
  EXPECT_EQ(round_trip(PrimitiveType::kF16, 65520), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(round_trip(PrimitiveType::kBf16, std::nan(""))));
  EXPECT_EQ(round_trip(PrimitiveType::kBf16, -std::numeric_limits<double>::infinity()),
            -std::numeric_limits<double>::infinity());
}

TEST(LiteralTest, Fp8) {
  pb::LiteralProto literal;
  literal.mutable_shape()->set_element_type(pb::F8E4M3FN);
  literal.mutable_shape()->add_dimensions(3);
  // 0 0111 000 = 1; 0 1111 110 = 1.75 * 2^8 = 448, the largest; 1 0000 001 = -2^-9
  literal.set_f8e4m3fns("\x38\x7e\x81");
  EXPECT_THAT(RealElements(literal), Optional(ElementsAre(1, 448, -std::ldexp(1, -9))));
}

TEST(LiteralTest, WhatDoesNotAddUpIsNoValue) {
  TestModule t;
  Instruction* constant = AddIntConstant(t.entry(), PrimitiveType::kS32, 3);
  EXPECT_EQ(ScalarIntConstant(*constant), 3);
  constant->mutable_attrs().mutable_literal()->clear_s32s();
  EXPECT_EQ(ScalarIntConstant(*constant), std::nullopt);
  constant->mutable_attrs().clear_literal();  // elided
  EXPECT_EQ(ScalarIntConstant(*constant), std::nullopt);
  EXPECT_EQ(ScalarIntConstant(*t.Param(S32({}))), std::nullopt);
  // Column-major elements would come in another order.
  pb::LiteralProto matrix;
  matrix.mutable_shape()->set_element_type(pb::S32);
  for (int d = 0; d < 2; ++d) matrix.mutable_shape()->add_dimensions(2);
  for (int v = 0; v < 4; ++v) matrix.add_s32s(v);
  EXPECT_THAT(IntElements(matrix), Optional(ElementsAre(0, 1, 2, 3)));
  matrix.mutable_shape()->mutable_layout()->add_minor_to_major(0);
  matrix.mutable_shape()->mutable_layout()->add_minor_to_major(1);
  EXPECT_EQ(IntElements(matrix), std::nullopt);
}

}  // namespace
}  // namespace tpusim::hlo
