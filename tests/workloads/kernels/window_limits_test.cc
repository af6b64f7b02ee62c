// Limits of the windows of kernels, beside the size of VMEM.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/config.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "tests/workloads/kernels/fused_product.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/tiling/kernels.h"

namespace tpusim::kernels {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;

class WindowLimits : public ::testing::Test {
 protected:
  // A step takes so long that the search wants the fewest.
  static configs::Config SlowSteps(const std::string& slice) {
    return configs::LoadConfig(slice, {"chip.tensor_core.grid_step_overhead_ns=1000000"}).value();
  }
  static int64_t Steps(const configs::Config& config, const Instruction& i) {
    return BuildKernel(i, target::Target(config)).value().Steps();
  }

  hlo::TestModule m_;
};

// [16384,1024] are 16384 registers: 16 windows of 1024, though v7x has 64 MiB for twice two
// windows of 2 MiB (bf16) each. On v5p each of the two cores has a window of its own.
TEST_F(WindowLimits, LoopsKeepToAThousandRegisters) {
  Instruction* x = m_.Param(MakeShape(PrimitiveType::kBf16, {16384, 1024}));
  const Instruction* copy = m_.Add(Opcode::kCopy, x->shape(), {x});
  EXPECT_EQ(Steps(SlowSteps("v7x-2x2x1"), *copy), 16);
  EXPECT_EQ(Steps(SlowSteps("v5p-2x2x1"), *copy), 8);
  EXPECT_EQ(Steps(SlowSteps("v5e-1x1"), *copy), 16);
}

// Nor is there a number of steps that is too large: 2^28 registers are 2^18 windows of 1024.
TEST_F(WindowLimits, ATebibyteHasAsManyWindowsAsItTakes) {
  Instruction* x = m_.Param(F32({1 << 20, 1 << 18}));
  const Instruction* copy = m_.Add(Opcode::kCopy, x->shape(), {x});
  EXPECT_EQ(Steps(SlowSteps("v5e-1x1"), *copy), 1 << 18);
}

// Transpositions keep to 384 registers: [1024,1024] are 1024 registers, 2.7 windows of 384.
TEST_F(WindowLimits, TranspositionsKeepToFewer) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* transpose = m_.Add(Opcode::kTranspose, x->shape(), {x});
  hlo::SetDimensions(transpose, {1, 0});
  EXPECT_EQ(Steps(SlowSteps("v5e-1x1"), *transpose), 3);
  EXPECT_EQ(Steps(SlowSteps("v7x-2x2x1"), *transpose), 3);
}

// Four times two operands of 2 MiB and twice the result are 20 MiB: more than one core has
// for windows, but not more than two.
TEST_F(WindowLimits, ALoneOperationHasTheRoomOfAllCores) {
  const Shape shape = MakeShape(PrimitiveType::kBf16, {1024, 1024});
  const Instruction* add = m_.Add(Opcode::kAdd, shape, {m_.Param(shape), m_.Param(shape)});
  EXPECT_EQ(Steps(configs::LoadConfig("v5e-1x1", {}).value(), *add), 8);
  EXPECT_EQ(Steps(configs::LoadConfig("v5p-2x2x1", {}).value(), *add), 1);
}

// A product of [2048,128] and [128,1024] with a softmax over its columns: 2048 registers of
// results. Without the softmax one block would do.
TEST_F(WindowLimits, ABlockThatWaitsKeepsToAThousandRegisters) {
  Instruction* a = m_.Param(F32({2048, 128}));
  Instruction* b = m_.Param(F32({128, 1024}));
  const Epilogue twice = [](Instruction* x) {
    return hlo::TestModule::Add(x->parent(), Opcode::kAdd, x->shape(), {x, x});
  };
  const configs::Config config = SlowSteps("v5e-1x1");
  EXPECT_EQ(Steps(config, *FusedProduct(m_, a, b, twice)), 1);
  EXPECT_EQ(Steps(config, *FusedProduct(m_, a, b, LessMaximum(m_, 0))), 2);
}

}  // namespace
}  // namespace tpusim::kernels
