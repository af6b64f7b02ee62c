#include "workloads/mosaic/assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "mosaic_test_util.h"
#include "workloads/mosaic/price.h"

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rows of scores are exponentiated and multiplied by a matrix, block by block along the last axis.
TEST(Assembly, PricesAsBytecodeDoes) {
  const std::string kernel = BodyBytes("attention_text");
  ASSERT_TRUE(IsAssembly(kernel));
  const auto module = ReadBody(kernel);
  ASSERT_TRUE(module.ok()) << module.status();
  Call call;
  call.operands = {{{512, 2048}, 2}, {{2048, 128}, 2}};
  call.results = {{{512, 128}, 4}};
  call.chip = &V5e();
  call.weights = {1e-14, 1e-10, 1e-9, 1e-9, 1e-12, 1e-11};
  const tpusim::KernelCost cost = PriceOf(**module, call).value();
  // 32 points with a product and a block of exponentials each.
  EXPECT_EQ(cost.flops(), 32 * 2 * 128 * 256 * 128);
  EXPECT_EQ(cost.transcendentals(), 32 * 128 * 256);
  EXPECT_THAT(cost.grid(), ElementsAre(4, 8));
  // Scores and matrix have another block at each point, the result at every eighth.
  EXPECT_EQ(cost.bytes_accessed(), 32 * 2 * 128 * 256 * 2 + 4 * 128 * 128 * 4);
  ASSERT_EQ(cost.blocks_size(), 3);
  EXPECT_THAT(cost.blocks(1).moves_with(), ElementsAre(1));
  EXPECT_THAT(cost.blocks(2).moves_with(), ElementsAre(0));
  ASSERT_EQ(cost.products_size(), 1);
  EXPECT_EQ(cost.products(0).ShortDebugString(),
            "m: 128 k: 256 n: 128 number_format: \"bf16\" count: 32");
}

// Loops carry values, and names are used again in regions beside one another.
TEST(Assembly, ReadsLoopsAndWhatTheyCarry) {
  const auto module = ReadBody(R"(module {
  func.func private @main(%arg0: memref<16xi32, #tpu.memory_space<smem>>) attributes {scalar_prefetch = 1 : i64} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %true = arith.constant true
    %0:2 = scf.for %arg1 = %c0 to %c16 step %c1 iter_args(%arg2 = %c0, %arg3 = %c1) -> (i32, i32)  : i32 {
      %1 = arith.index_cast %arg1 : i32 to index
      %2 = memref.load %arg0[%1] : memref<16xi32, #tpu.memory_space<smem>>
      %3 = arith.addi %2, %arg3 : i32
      scf.yield %3, %arg2 : i32, i32
    }
    %1 = scf.if %true -> (i32) {
      scf.yield %0#1 : i32
    } else {
      scf.yield %0#0 : i32
    }
    return
  }
}
)");
  ASSERT_TRUE(module.ok()) << module.status();
  const Operation* main = (*module)->Main();
  ASSERT_NE(main, nullptr);
  EXPECT_EQ((*module)->Function("main"), main);
  const Block& block = main->regions[0].blocks[0];
  ASSERT_EQ(block.operations.size(), 7);
  const Operation& loop = *block.operations[4];
  ASSERT_EQ(loop.name, "scf.for");
  EXPECT_EQ(loop.operands.size(), 5);
  ASSERT_EQ(loop.results.size(), 2);
  const Block& body = loop.regions[0].blocks[0];
  ASSERT_EQ(body.arguments.size(), 3);
  EXPECT_EQ(body.arguments[0]->type->name, "i32");
  EXPECT_EQ(body.operations[1]->results[0]->type->name, "i32");
  EXPECT_EQ(body.operations[2]->operands[1], body.arguments[2]);
  const Operation& branch = *block.operations[5];
  ASSERT_EQ(branch.regions.size(), 2);
  EXPECT_EQ(branch.regions[0].blocks[0].operations[0]->operands[0], loop.results[1]);
  EXPECT_EQ(branch.regions[1].blocks[0].operations[0]->operands[0], loop.results[0]);
  EXPECT_EQ(branch.results[0]->type->name, "i32");
}

TEST(Assembly, SaysWhichLineItDoesNotUnderstand) {
  for (const auto& [text, line] : {
           std::pair("module {\n  func.func @f(%a: i32) {\n    %0 = arith.addi %a, %b : i32\n",
                     "line 3"),
           std::pair("module {\n  func.func @f(%a: i32)\n", "line 2"),
           std::pair("module {\n  func.func @f(%a: i32) {\n", "line 2"),
           std::pair("module attributes\n", "line 1")}) {
    const auto module = ReadBody(text);
    ASSERT_FALSE(module.ok()) << text;
    EXPECT_THAT(module.status().message(), HasSubstr(line));
  }
}

}  // namespace
}  // namespace tpusim::mosaic
