#include "workloads/mosaic/price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "mosaic_test_util.h"
#include "workloads/mosaic/bytecode.h"

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Call CallOf(std::vector<Call::Array> operands, std::vector<Call::Array> results) {
  Call call;
  call.operands = std::move(operands);
  call.results = std::move(results);
  call.chip = &V5e();
  call.weights = {1e-14, 1e-10, 1e-9, 1e-9, 1e-12, 1e-11};
  return call;
}

std::string ProductText(const tpusim::KernelCost& cost) {
  std::string text;
  for (const tpusim::KernelProduct& product : cost.products()) text += product.ShortDebugString();
  return text;
}

TEST(Price, GridBranchesAndBlocks) {
  const auto module = ReadBytecode(BodyBytes("matmul")).value();
  const Call call = CallOf({{{512, 1024}, 2}, {{1024, 512}, 2}}, {{{512, 512}, 2}});
  const tpusim::KernelCost cost = PriceOf(*module, call).value();
  // 64 points: the product and the addition to the sum; at every eighth the conversion to bf16.
  EXPECT_EQ(cost.flops(), 64 * (2 * 128 * 256 * 128 + 128 * 256) + 8 * 128 * 256);
  EXPECT_EQ(cost.transcendentals(), 8 * 128 * 256);
  // Both operands have another block at every point, the result at every eighth.
  EXPECT_EQ(cost.bytes_accessed(), 64 * 128 * 128 * 2 + 64 * 128 * 256 * 2 + 8 * 128 * 256 * 2);
  EXPECT_THAT(cost.grid(), ElementsAre(4, 2, 8));
  ASSERT_EQ(cost.blocks_size(), 3);
  EXPECT_EQ(cost.blocks(0).bytes(), 128 * 128 * 2);
  EXPECT_THAT(cost.blocks(0).moves_with(), ElementsAre(0, 2));
  EXPECT_THAT(cost.blocks(1).moves_with(), ElementsAre(1, 2));
  EXPECT_THAT(cost.blocks(2).moves_with(), ElementsAre(0, 1));
  EXPECT_TRUE(cost.blocks(2).output());
  EXPECT_EQ(ProductText(cost), "m: 128 k: 128 n: 256 number_format: \"bf16\" count: 64");
}

// Registers are counted: the sum is 64 of 128 x 256 in f32; at every eighth point it is
// exponentiated and packed.
TEST(Price, OperationsCostTheirRows) {
  const auto module = ReadBytecode(BodyBytes("matmul")).value();
  const Call call = CallOf({{{512, 1024}, 2}, {{1024, 512}, 2}}, {{{512, 512}, 2}});
  const tpusim::KernelCost cost = PriceOf(*module, call).value();
  double valu = 0, eup = 0;
  for (const tpusim::KernelStage& stage : cost.stages()) {
    valu += stage.valu();
    eup += stage.eup();
  }
  const double registers = 128 / 8 * 256 / 128;
  const configs::Instructions& rows = *V5e().instructions;
  EXPECT_EQ(eup, 8 * registers * rows.At("exponential").eup);
  EXPECT_EQ(valu, registers * (64 * rows.At("add").valu + 8 * rows.At("exponential").valu +
                               8 * rows.At("pack", "bf16").valu / 2));
}

TEST(Price, TablesDecideBranchesAndBlocks) {
  const auto module = ReadBytecode(BodyBytes("table")).value();
  Call call = CallOf({{{4}, 4}, {{32, 128}, 4}}, {{{32, 128}, 4}});
  // Not known: every block is another one and is computed on; sums are a reduction and a product.
  const tpusim::KernelCost most = PriceOf(*module, call).value();
  EXPECT_EQ(most.flops(), 4 * 2 * 8 * 128);
  EXPECT_EQ(most.bytes_accessed(), 4 * 4 + 2 * 4 * 8 * 128 * 4);
  // Two are left out and show the block that is there.
  call.operands[0].table = std::make_shared<const Table>(Table{{4}, {0, 0, 1, 1}});
  const tpusim::KernelCost known = PriceOf(*module, call).value();
  EXPECT_EQ(known.flops(), 2 * 2 * 8 * 128);
  EXPECT_EQ(known.bytes_accessed(), 4 * 4 + (2 + 4) * 8 * 128 * 4);
}

TEST(Price, LoopsOnDataAndCopiesOfComputedSize) {
  const auto module = ReadBytecode(BodyBytes("copies")).value();
  const Call call = CallOf({{{8}, 4}, {{64, 128}, 4}}, {{{32, 128}, 4}});
  const tpusim::KernelCost cost = PriceOf(*module, call).value();
  // The lengths and the result; the source is where it is.
  EXPECT_EQ(cost.bytes_accessed(), 8 * 4 + 32 * 128 * 4);
  ASSERT_EQ(cost.loops_size(), 1);
  EXPECT_EQ(cost.loops(0).name(), "copies/loop.0");
  EXPECT_THAT(cost.loops(0).source(), HasSubstr("make_seeds.py:"));
  EXPECT_EQ(cost.loops(0).pass().bytes_accessed(), 16 * 128 * 4);  // at most 16 rows each
  ASSERT_EQ(cost.assumed_size(), 1);
  EXPECT_THAT(cost.assumed(0), HasSubstr("float32[16,128] at"));
}

// An operation without a place has that of what is around it.
TEST(Price, WhatHasNoRuleIsNamedWithItsPlace) {
  const auto module = ReadBytecode(BodyBytes("matmul")).value();
  const Call call = CallOf({{{512, 1024}, 2}, {{1024, 512}, 2}}, {{{512, 512}, 2}});
  const Operation* branch = nullptr;
  for (Operation& operation : module->operations) {
    if (operation.name == "scf.if") branch = &operation;
    if (operation.name != "math.exp") continue;
    operation.name = "math.exq";
    operation.location = nullptr;
  }
  ASSERT_NE(branch, nullptr);
  EXPECT_EQ(Message(PriceOf(*module, call).status()),
            "there is no rule for math.exq at " + PlaceOf(branch->location));
}

TEST(Price, AnotherCallIsAnError) {
  const auto module = ReadBytecode(BodyBytes("matmul")).value();
  EXPECT_THAT(Message(PriceOf(*module, CallOf({}, {})).status()), HasSubstr("other arguments"));
}

}  // namespace
}  // namespace tpusim::mosaic
