// Pallas kernels whose calls state nothing: priced by their bodies, or by their estimates.
#include "workloads/kernels/opaque/body_cost.h"

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/workloads/kernels/kernel_families.h"
#include "tests/workloads/mosaic/mosaic_test_util.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/opaque/custom_cost.h"

namespace tpusim::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Shape BF16(std::vector<int64_t> dims) {
  return hlo::MakeShape(hlo::PrimitiveType::kBf16, std::move(dims));
}

class BodyCost : public KernelFamilies {
 protected:
  Instruction* CallOf(const std::string& body, const std::string& estimate, const Shape& result,
                      std::vector<Instruction*> operands) {
    Instruction* call = m_.Add(Opcode::kCustomCall, result, std::move(operands));
    call->mutable_attrs().set_custom_call_target("tpu_custom_call");
    std::string encoded;
    absl::Base64Escape(body, &encoded);
    call->mutable_attrs().set_backend_config(
        R"({"custom_call_config":{"body":")" + encoded + "\"" +
        (estimate.empty() ? "" : ",\"cost_estimate\":" + estimate) + "}}");
    return call;
  }
  void Price(const KernelTrips& trips = [](const tpusim::KernelLoop&) { return std::nullopt; }) {
    SetBodyCosts(m_.module(), 1, trips, target_);
  }
};

TEST_F(BodyCost, TheBodyCountsMoreThanTheEstimate) {
  Instruction* x = m_.Param(BF16({512, 1024}));
  Instruction* w = m_.Param(BF16({1024, 512}));
  Instruction* call = CallOf(mosaic::BodyBytes("matmul"), R"({"flops":1,"bytes_accessed":1})",
                             BF16({512, 512}), {x, w});
  Price();
  const CustomCost cost = CustomCostOf(*call).value();
  ASSERT_EQ(cost.products.size(), 1);
  EXPECT_EQ(cost.products[0].count, 64);
  ASSERT_TRUE(cost.pipeline.has_value());
  EXPECT_THAT(cost.pipeline->grid, ElementsAre(4, 2, 8));
  EXPECT_THAT(cost.assumed, IsEmpty());
}

TEST_F(BodyCost, TablesOfConstantsAreKnown) {
  Instruction* x = m_.Param(F32({32, 128}));
  Instruction* table = hlo::AddLiteral(
      x->parent(), hlo::MakeIntVectorLiteral(hlo::PrimitiveType::kS32, {0, 0, 1, 1}));
  Instruction* call = CallOf(mosaic::BodyBytes("table"), "", F32({32, 128}), {table, x});
  Price();
  // Two of four blocks are reduced and multiplied.
  EXPECT_EQ(CustomCostOf(*call).value().flops, Flops(2 * 2 * 8 * 128));
}

// The compiler's own kernels: with a grid they are pipelined like any other, without one the scalar
// core executes them.
TEST_F(BodyCost, TextIsPricedByItsGridOrOnTheScalarCore) {
  Instruction* x = m_.Param(BF16({512, 2048}));
  Instruction* w = m_.Param(BF16({2048, 128}));
  const std::string body = mosaic::BodyBytes("attention_text");
  Instruction* attention = CallOf(body, "", F32({512, 128}), {x, w});
  std::string scalar = body;
  const std::string grid = "iteration_bounds = array<i64: 4, 8>, ";
  scalar.erase(scalar.find(grid), grid.size());
  Instruction* metadata = CallOf(scalar, "", F32({8}), {x, w});
  std::string damaged = body;
  damaged.replace(damaged.find("exp %1"), 6, "exp %9");
  Instruction* unread = CallOf(damaged, "", F32({512, 128}), {x, w});
  Price();
  const CustomCost cost = CustomCostOf(*attention).value();
  ASSERT_TRUE(cost.pipeline.has_value());
  EXPECT_THAT(cost.pipeline->grid, ElementsAre(4, 8));
  EXPECT_EQ(cost.products.at(0).count, 32);
  EXPECT_FALSE(cost.time.has_value());
  const CustomCost of_scalars = CustomCostOf(*metadata).value();
  EXPECT_FALSE(of_scalars.pipeline.has_value());
  // 29 lines for each of eight results.
  EXPECT_EQ(of_scalars.time, ToTime(Cycles(29 * 8), target_.chip().clock));
  EXPECT_THAT(std::string(CustomCostOf(*unread).status().message()), HasSubstr("line 11"));
  EXPECT_EQ(NameOfBody(*attention), "main");
}

TEST_F(BodyCost, LoopsTakeStatedCounts) {
  Instruction* lengths = m_.Param(S32({8}));
  Instruction* x = m_.Param(F32({64, 128}));
  Instruction* call = CallOf(mosaic::BodyBytes("copies"), "", F32({32, 128}), {lengths, x});
  Price();
  EXPECT_THAT(UnpricedReason(*call), HasSubstr("--trip-count copies/loop.0=N"));
  ASSERT_EQ(OpenLoopsOf(*call).size(), 1);
  Instruction* other = CallOf(mosaic::BodyBytes("copies"), "", F32({32, 128}), {lengths, x});
  Price([](const tpusim::KernelLoop&) { return 3; });
  // Three copies of at most 16 rows, the lengths and the result.
  EXPECT_EQ(CustomCostOf(*other).value().bytes, Bytes(3 * 16 * 128 * 4 + 8 * 4 + 32 * 128 * 4));
}

// A time that the workload states, as it is written before anybody looks at the body.
TEST_F(BodyCost, AStatedTimeLeavesWhatTheBodyDoes) {
  Instruction* lengths = m_.Param(S32({8}));
  Instruction* x = m_.Param(F32({64, 128}));
  Instruction* w = m_.Param(BF16({512, 1024}));
  Instruction* v = m_.Param(BF16({1024, 512}));
  const std::string estimate = R"({"flops":1,"bytes_accessed":1})";
  Instruction* known = CallOf(mosaic::BodyBytes("matmul"), estimate, BF16({512, 512}), {w, v});
  Instruction* open = CallOf(mosaic::BodyBytes("copies"), "", F32({32, 128}), {lengths, x});
  CustomCost time;
  time.time = Microseconds(100);
  SetCustomCosts(m_.module(), {{"*", time}});
  EXPECT_EQ(TimeAlone(*known), Microseconds(100));
  Price();
  EXPECT_EQ(TimeAlone(*known), std::nullopt);
  EXPECT_EQ(CustomCostOf(*known)->time, Microseconds(100));
  EXPECT_EQ(CustomCostOf(*known)->products.at(0).count, 64);
  // A loop without a count: the time is all there is.
  EXPECT_EQ(TimeAlone(*open), Microseconds(100));
  EXPECT_EQ(UnpricedReason(*open), "");
}

TEST_F(BodyCost, WhatIsStatedStandsBesideTheBody) {
  Instruction* lengths = m_.Param(S32({8}));
  Instruction* x = m_.Param(F32({64, 128}));
  Instruction* call = CallOf(mosaic::BodyBytes("copies"), "", F32({32, 128}), {lengths, x});
  CallOf("what nobody can read", "", F32({32, 128}), {x});
  SetCustomCosts(m_.module(), {{call->name(), {Flops(5), Flops(0), Bytes(8)}}});
  Price();
  EXPECT_EQ(CustomCostOf(*call)->flops, Flops(5));
  const std::vector<BodyPrice> prices = BodyPrices(m_.module(), 1, target_);
  ASSERT_EQ(prices.size(), 2);
  EXPECT_EQ(prices[0].call, call);
  EXPECT_EQ(prices[0].price->loops(0).name(), "copies/loop.0");
  EXPECT_THAT(Message(prices[1].price.status()), HasSubstr("no MLIR bytecode"));
}

TEST_F(BodyCost, AnEstimateFillsTheArraysAsFarAsHeadsDo) {
  Instruction* q = m_.Param(BF16({8, 1024, 64}));
  const std::string estimate =
      R"({"flops":2147483648,"transcendentals":8388608,"bytes_accessed":4194304})";
  Instruction* call = CallOf("what nobody can read", estimate, BF16({8, 1024, 64}), {q});
  Price();
  const CustomCost cost = CustomCostOf(*call).value();
  // Products 64 deep leave half of the 128 rows of an array empty: 2^31 / (2 x 128 x 64 x 128).
  ASSERT_EQ(cost.products.size(), 1);
  EXPECT_EQ(cost.products[0].k, 64);
  EXPECT_EQ(cost.products[0].count, 1024);
  EXPECT_EQ(cost.transcendentals, Flops(8388608));
  EXPECT_THAT(cost.assumed, ElementsAre(::testing::AllOf(HasSubstr("50 % of the arrays full"),
                                                         HasSubstr("no MLIR bytecode"))));
}

TEST_F(BodyCost, WhatCannotBeReadAndEstimatesNothingIsNamed) {
  Instruction* x = m_.Param(F32({32, 128}));
  Instruction* call = CallOf("what nobody can read", "", F32({32, 128}), {x});
  Price();
  EXPECT_THAT(Message(CustomCostOf(*call).status()),
              ::testing::AllOf(HasSubstr(call->name()), HasSubstr("no MLIR bytecode"),
                               HasSubstr("--kernel-cost")));
}

}  // namespace
}  // namespace tpusim::kernels
