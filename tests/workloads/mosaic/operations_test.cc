#include "workloads/mosaic/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mosaic_test_util.h"

namespace tpusim::mosaic {
namespace {

class Operations : public HandMade {
 protected:
  Stage Cost(const Operation& operation, const configs::ChipParams& chip = V5e()) {
    return CostOnChip(operation, chip).value();
  }
  std::optional<Stage> CostOnChip(const Operation& operation, const configs::ChipParams& chip) {
    Repeats repeats;
    for (const Operation* each : block_.operations) repeats.Add(*each);
    return StageOf(operation, chip, repeats);
  }
  // Costs an elementwise operation on four registers.
  Stage Elementwise(const std::string& name, const std::string& element = "f32") {
    const Value* x = Argument(Vector({16, 256}, element));
    return Cost(Add(name, {x, x}, x->type));
  }
};

TEST_F(Operations, RegistersAreTilesOfTheLastTwoDimensions) {
  const configs::VpuParams& vpu = V5e().vpu;
  EXPECT_EQ(RegistersOf(*Vector({16, 256}), vpu), 4);
  EXPECT_EQ(RegistersOf(*Vector({3, 16, 256}, "bf16"), vpu), 12);
  EXPECT_EQ(RegistersOf(*Vector({512, 1}), vpu), 64);
  EXPECT_EQ(RegistersOf(*Vector({1, 129}), vpu), 2);
  EXPECT_EQ(RegistersOf(*Vector({1025}), vpu), 2);
  EXPECT_EQ(RegistersOf(*Scalar("f32"), vpu), 1);
}

// Rows are those of fused kernels (layout_cost_test.cc).
TEST_F(Operations, FunctionsCostTheirRows) {
  const configs::Instructions& rows = *V5e().instructions;
  const Stage sine = Elementwise("math.sin");
  EXPECT_EQ(sine.valu, 4 * rows.At("sine").valu);
  EXPECT_EQ(sine.eup, 4 * rows.At("sine").eup);
  EXPECT_EQ(sine.transcendentals, 16 * 256);
  EXPECT_EQ(sine.flops, 0);
  EXPECT_EQ(Elementwise("arith.divf").valu, 4 * rows.At("divide").valu);
  EXPECT_EQ(Elementwise("arith.divf", "bf16").valu, 4 * rows.At("divide", "bf16").valu);
  EXPECT_EQ(Elementwise("arith.divsi", "i32").valu, 4 * rows.At("divide", "s32").valu);
  EXPECT_EQ(Elementwise("arith.addf").valu, 4);
  EXPECT_EQ(Elementwise("arith.addf").flops, 16 * 256);
}

TEST_F(Operations, EveryOperationThatCostsHasARowOnEveryChip) {
  for (const char* name :
       {"arith.mulsi_extended", "arith.shrui", "math.atan", "math.erfc", "math.log10", "math.cttz",
        "math.copysign", "math.isinf", "math.ipowi", "math.fma", "tpu.stochastic_convert",
        "tpu.prng_random_bits", "tpu.iota", "tpu.relayout", "tpu.dynamic_gather", "tpu.logistic",
        "tpu.reduce_precision", "tpu.weird"}) {
    for (const char* chip : {"v2", "v4", "v5e", "v6e", "v7x", "8t"}) {
      const configs::ChipFile file = configs::LoadChip(chip, "").value();
      const Value* x = Argument(Vector({16, 256}, "i32"));
      const std::optional<Stage> stage = CostOnChip(Add(name, {x, x}, x->type), file.chip);
      ASSERT_TRUE(stage.has_value()) << name << " on " << chip;
      EXPECT_GT(stage->valu + stage->eup + stage->xlu, 0) << name << " on " << chip;
    }
  }
}

TEST_F(Operations, AnOperationThatNobodyKnowsHasNoCost) {
  const Value* x = Argument(Vector({16, 256}));
  EXPECT_EQ(RuleOf("math.exq"), Rule::kNone);
  EXPECT_EQ(RuleOf("arith.exq"), Rule::kNone);
  EXPECT_EQ(CostOnChip(Add("math.exq", {x}, x->type), V5e()), std::nullopt);
  // Bits of floats: an operation that is known, on a type without a row.
  EXPECT_EQ(CostOnChip(Add("arith.andi", {x, x}, x->type), V5e()), std::nullopt);
}

TEST_F(Operations, AConstantDivisorAndAnApproximationAreCheaper) {
  const configs::Instructions& rows = *V5e().instructions;
  const Type* type = Vector({16, 256}, "i32");
  const auto divided_by = [&](int64_t divisor) {
    Attribute number{Attribute::Kind::kInteger};
    number.integer = divisor;
    const Attribute* value = &m_.attributes.emplace_back(std::move(number));
    const Value* one = Add("arith.constant", {}, Scalar("i32"), {{"value", value}}).results[0];
    const Value* all = Add("vector.broadcast", {one}, type).results[0];
    return Cost(Add("arith.divsi", {Argument(type), all}, type)).valu;
  };
  EXPECT_EQ(divided_by(7), 4 * rows.At("divide-by-constant", "s32").valu);
  EXPECT_EQ(divided_by(8), 4);
  const Value* x = Argument(Vector({16, 256}));
  Attribute yes{Attribute::Kind::kInteger};
  yes.integer = 1;
  const Stage close = Cost(Add("tpu.reciprocal", {x}, x->type,
                               {{"approx", &m_.attributes.emplace_back(std::move(yes))}}));
  EXPECT_EQ(close.valu, 0);
  EXPECT_EQ(close.eup, 4);
  EXPECT_EQ(Cost(Add("tpu.reciprocal", {x}, x->type)).valu, 4 * rows.At("reciprocal").valu);
}

TEST_F(Operations, NarrowTypesArePackedAndUnpacked) {
  const Type *wide = Vector({16, 256}), *narrow = Vector({16, 256}, "bf16");
  EXPECT_EQ(Cost(Add("arith.extf", {Argument(narrow)}, wide)).valu, 4);
  EXPECT_EQ(Cost(Add("arith.truncf", {Argument(wide)}, narrow)).valu, 2);
  EXPECT_EQ(Cost(Add("arith.truncf", {Argument(wide)}, Vector({16, 256}, "f8E4M3FN"))).valu, 3);
  const configs::ChipFile v4 = configs::LoadChip("v4", "").value();
  const Value* half = Argument(Vector({16, 256}, "f16"));
  EXPECT_EQ(Cost(Add("arith.extf", {half}, wide), v4.chip).valu, 4 * 15);
}

TEST_F(Operations, WhatCrossesLanesTakesTheirUnit) {
  const Value* x = Argument(Vector({16, 256}));
  EXPECT_EQ(Cost(Add("tpu.rotate", {x}, x->type)).xlu, 4);
  EXPECT_EQ(Cost(Add("tpu.rotate", {x}, x->type)).valu, 0);
  // Sixteen registers come out, of two that go in.
  EXPECT_EQ(Cost(Add("tpu.transpose", {Argument(Vector({16, 128}))}, Vector({128, 16}))).xlu, 16);
  EXPECT_EQ(Cost(Add("vector.shape_cast", {x}, Vector({1, 16, 256}))).xlu, 0);
  EXPECT_EQ(Cost(Add("vector.shape_cast", {x}, Vector({32, 128}))).xlu, 4);
  const Value* y = Argument(Vector({16, 64}));
  EXPECT_EQ(Cost(Add("tpu.concatenate", {x, x}, Vector({16, 512}))).xlu, 0);
  EXPECT_EQ(Cost(Add("tpu.concatenate", {x, y}, Vector({16, 320}))).xlu, 6);
  const Type* half = Vector({16, 128});
  const auto sliced_from = [&](int64_t lane) {
    return Cost(Add("vector.extract_strided_slice", {x}, half, {{"offsets", Integers({0, lane})}}));
  };
  EXPECT_EQ(sliced_from(128).xlu, 0);
  EXPECT_EQ(sliced_from(64).xlu, 2);
}

TEST_F(Operations, AValueIsSpreadOverTheLanesOncePerRow) {
  const Type* all = Vector({16, 256});
  EXPECT_EQ(Cost(Add("vector.broadcast", {Argument(Vector({16, 1}))}, all)).xlu, 2);
  EXPECT_EQ(Cost(Add("vector.broadcast", {Argument(Vector({1, 256}))}, all)).xlu, 0);
  EXPECT_EQ(Cost(Add("vector.broadcast", {Argument(Scalar("f32"))}, all)).xlu, 0);
  // A reduction leaves its results in all lanes.
  const Operation& largest = Add("vector.multi_reduction", {Argument(all)}, Vector({16}),
                                 {{"reduction_dims", Integers({1})}});
  const Operation& column = Add("vector.shape_cast", {largest.results[0]}, Vector({16, 1}));
  EXPECT_EQ(Cost(Add("vector.broadcast", {column.results[0]}, all)).xlu, 0);
}

TEST_F(Operations, ReductionsCombineRegistersAndThenLanes) {
  const Value* x = Argument(Vector({64, 256}));
  const auto cost = [&](int64_t dim, int64_t left) {
    return Cost(Add("vector.multi_reduction", {x}, Vector({left}),
                    {{"reduction_dims", Integers({dim})}}));
  };
  // Eight registers of rows are transposed and leave in eight pops.
  const Stage lanes = cost(1, 64);
  EXPECT_EQ(lanes.xlu, 8 + 8);
  EXPECT_EQ(lanes.valu, 16 + 8);
  EXPECT_EQ(lanes.flops, 64 * 256);
  // Two registers of columns, rotated three times.
  const Stage rows = cost(0, 256);
  EXPECT_EQ(rows.xlu, 3 * 2);
  EXPECT_EQ(rows.valu, 16 + 3 * 2);
}

TEST_F(Operations, ProductsHaveSizesAndFormats) {
  const Type *lhs = Vector({64, 128}, "bf16"), *rhs = Vector({128, 256}, "bf16");
  const auto stage =
      ProductOf(Add("tpu.matmul", {Argument(lhs), Argument(rhs)}, Vector({64, 256})));
  ASSERT_TRUE(stage.has_value());
  EXPECT_EQ(stage->flops, 2 * 64 * 128 * 256);
  ASSERT_EQ(stage->products.size(), 1);
  const Product& product = stage->products.begin()->first;
  EXPECT_EQ(product.m, 64);
  EXPECT_EQ(product.k, 128);
  EXPECT_EQ(product.n, 256);
  EXPECT_EQ(product.format, "bf16");
  const Type* index = Vector({64, 128}, "index");
  EXPECT_EQ(ProductOf(Add("tpu.matmul", {Argument(index), Argument(index)}, lhs)), std::nullopt);
}

}  // namespace
}  // namespace tpusim::mosaic
