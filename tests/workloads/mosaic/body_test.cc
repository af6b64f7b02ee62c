#include "workloads/mosaic/body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "mosaic_test_util.h"

namespace tpusim::mosaic {
namespace {

using ::testing::HasSubstr;
using ::testing::IsNull;

const Weights kWeights{1e-14, 1e-10, 1e-9, 1e-9, 1e-12, 1e-11};

class Bodies : public HandMade {
 protected:
  Price PriceOfBlock(const std::vector<int64_t>& grid = {}) {
    body_ = std::make_unique<Body>(grid, V5e(), kWeights);
    return body_->PriceOf(block_);
  }
  // Scores of queries and keys, their largest, what is left of them, and the product with values.
  void AddAttention() {
    const Value* q = Argument(Vector({128, 128}, "bf16"));
    const Value* k = Argument(Vector({128, 256}, "bf16"));
    const Value* v = Argument(Vector({256, 128}, "bf16"));
    const Type* scores = Vector({128, 256});
    const Value* s = Add("tpu.matmul", {q, k}, scores).results[0];
    const Value* most = Add("vector.multi_reduction", {s}, Vector({128}),
                            {{"reduction_dims", Integers({1})}})
                            .results[0];
    const Value* spread = Add("vector.broadcast", {most}, scores).results[0];
    const Value* left = Add("arith.subf", {s, spread}, scores).results[0];
    const Value* p = Add("arith.truncf", {left}, Vector({128, 256}, "bf16")).results[0];
    Add("tpu.matmul", {p, v}, Vector({128, 128}));
  }

  std::unique_ptr<Body> body_;
};

TEST_F(Bodies, ElementwiseWorkIsOneStageAtEveryPoint) {
  const Value* x = Argument(Vector({16, 256}));
  Add("math.sin", {x}, x->type);
  block_.arguments.insert(block_.arguments.begin(), &m_.values.emplace_back(Value{Scalar("i32")}));
  const Price price = PriceOfBlock({6});
  ASSERT_EQ(price.stages.size(), 1);
  EXPECT_EQ(price.stages[0].valu, 6 * 4 * V5e().instructions->At("sine").valu);
  EXPECT_EQ(price.chain_flops, 0);
  EXPECT_TRUE(body_->status().ok());
}

TEST_F(Bodies, AProductOfWhatWaitedForAReductionIsAStageOfItsOwn) {
  AddAttention();
  const Price price = PriceOfBlock();
  ASSERT_EQ(price.stages.size(), 3);
  EXPECT_EQ(price.stages[0].products.begin()->first.n, 256);
  EXPECT_EQ(price.stages[2].products.begin()->first.n, 128);
  // The difference and its packing run behind the first product, which the reduction ends.
  const double registers = 128 / 8 * 256 / 128;
  EXPECT_EQ(price.stages[1].valu, registers * (1 + 0.5));
  EXPECT_GT(price.stages[0].xlu, 0);
}

TEST_F(Bodies, OneChainExposesAllOfItsWaits) {
  AddAttention();
  const Price price = PriceOfBlock();
  EXPECT_EQ(price.chain_flops, 2.0 * 128 * 128 * 256);
  EXPECT_EQ(price.exposed_flops, price.chain_flops);
}

// The region is a loop over keys that is unrolled.
TEST_F(Bodies, ChainsOfOneRegionOverlap) {
  for (int n = 0; n < 4; ++n) AddAttention();
  const Price price = PriceOfBlock({});
  EXPECT_EQ(price.chain_flops, 4 * 2.0 * 128 * 128 * 256);
  EXPECT_EQ(price.exposed_flops, price.chain_flops / 4);
  const tpusim::KernelCost cost = price.Cost("f");
  EXPECT_EQ(cost.exposed_flops() / cost.chain_flops(), 0.25);
}

TEST_F(Bodies, AnOperationWithoutARowStopsWithItsName) {
  const Value* x = Argument(Vector({16, 256}));
  Add("math.sinc", {x}, x->type);
  PriceOfBlock();
  EXPECT_EQ(Message(body_->status()), "there is no rule for math.sinc");
}

TEST_F(Bodies, ATypeWithoutARowStopsWithTheOperation) {
  const Value* x = Argument(Vector({16, 256}));
  Add("arith.andi", {x, x}, x->type);
  PriceOfBlock();
  EXPECT_THAT(Message(body_->status()), HasSubstr("there is no rule for arith.andi"));
}

TEST_F(Bodies, SignsOfIntegersAreOneOperation) {
  const Type* integers = Vector({16, 256}, "i32");
  const Type* booleans = Vector({16, 256}, "i1");
  const Value* x = Argument(integers);
  const Value* zero = Argument(integers);
  const auto sign = [&] {
    const Value* above = Add("arith.cmpi", {x, zero}, booleans).results[0];
    const Value* below = Add("arith.cmpi", {x, zero}, booleans).results[0];
    const Value* one = Add("arith.extui", {above}, integers).results[0];
    const Value* other = Add("arith.extui", {below}, integers).results[0];
    return Add("arith.subi", {one, other}, integers).results[0];
  };
  sign();
  EXPECT_EQ(PriceOfBlock().Total().flops, 16 * 256);
}

TEST_F(Bodies, AGridOfTooManyPointsHasNoPrice) {
  block_.arguments = {&m_.values.emplace_back(Value{Scalar("i32")})};
  PriceOfBlock({int64_t{1} << 40});
  EXPECT_THAT(Message(body_->status()), HasSubstr("its grid has 1099511627776 points"));
}

TEST_F(Bodies, AWindowsFunctionGivesIntegersAtEveryPoint) {
  const Value* i = Argument(Scalar("i32"));
  const Value* j = Argument(Scalar("i32"));
  const Value* data = Argument(Scalar("i32"));
  Operation& last = m_.operations.emplace_back();
  last.name = "func.return";
  last.operands = {j, i, data};
  block_.operations.push_back(&last);
  Body body({2, 3}, V5e(), kWeights);
  const auto results = body.ResultsOf(block_);
  ASSERT_EQ(results.size(), 3);
  for (size_t n = 0; n < 6; ++n) {
    EXPECT_EQ((*results[0])[n], static_cast<int64_t>(n) % 3);
    EXPECT_EQ((*results[1])[n], static_cast<int64_t>(n) / 3);
  }
  EXPECT_THAT(results[2], IsNull());
}

TEST_F(Bodies, AShapeThatIsGivenIsLookedThrough) {
  const Value* x = Argument(Vector({16, 256}));
  const Value* y = Add("vector.shape_cast", {x}, Vector({1, 16, 256})).results[0];
  const Value* z = Add("vector.shape_cast", {y}, x->type).results[0];
  EXPECT_EQ(Unshaped(z), x);
  EXPECT_EQ(RootOf(x), x);
}

}  // namespace
}  // namespace tpusim::mosaic
