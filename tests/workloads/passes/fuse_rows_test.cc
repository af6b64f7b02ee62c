// Reductions and what is made of their results row by row.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/workloads/passes/pass_test.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/kernels.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr char kReducers[] = R"(HloModule m
most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
)";

// The softmax of `dims` over the last of them, of a parameter `x`.
std::string SoftmaxOf(const std::string& x, const std::string& rows, const std::string& kept,
                      const std::string& dimensions, int64_t last) {
  return fmt::format(
      R"(  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[{2}] reduce({0}, lowest), dimensions={{{4}}}, to_apply=most
  tops = f32[{1}] broadcast(top), dimensions={{{3}}}
  less = f32[{1}] subtract({0}, tops)
  e = f32[{1}] exponential(less)
  sum = f32[{2}] reduce(e, zero), dimensions={{{4}}}, to_apply=plus
  sums = f32[{1}] broadcast(sum), dimensions={{{3}}}
)",
      x, rows, kept, dimensions, last);
}

std::string Attention(int64_t keys) {
  return fmt::format(
      R"({0}ENTRY e {{
  q = f32[2,1024,128] parameter(0)
  k = f32[2,{1},128] parameter(1)
  v = f32[2,{1},128] parameter(2)
  x = f32[2,1024,{1}] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
{2}  shares = f32[2,1024,{1}] divide(e, sums)
  ROOT o = f32[2,1024,128] dot(shares, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
}})",
      kReducers, keys, SoftmaxOf("x", fmt::format("2,1024,{}", keys), "2,1024", "0,1", 2));
}

std::string Softmax(const std::string& rows, const std::string& kept, const std::string& dimensions,
                    int64_t last) {
  return fmt::format(
      "{}ENTRY e {{\n  x = f32[{}] parameter(0)\n{}  ROOT r = f32[{}] divide(e, sums)\n}}",
      kReducers, rows, SoftmaxOf("x", rows, kept, dimensions, last), rows);
}

std::vector<const Instruction*> KernelsOf(PassText& test) {
  EXPECT_TRUE(test.Run("fusion").value());
  std::vector<const Instruction*> kernels;
  for (const Instruction* i : test.module().entry()->PostOrder()) {
    if (hlo::RunsAsKernel(i->opcode())) kernels.push_back(i);
  }
  return kernels;
}

const Instruction* Inside(const Instruction& fusion, Opcode opcode) {
  for (const Instruction* i : fusion.called()[0]->PostOrder()) {
    if (i->opcode() == opcode) return i;
  }
  return nullptr;
}

// As compiled for v5e, v5p, v6e and v7x: the product with the maxima, the exponentials and their
// sums, which are its results, and the product with the values.
TEST(FuseRows, AttentionIsTwoKernels) {
  PassText test(Attention(2048), "v5e-1x1");
  const std::vector<const Instruction*> kernels = KernelsOf(test);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NE(Inside(*kernels[0], Opcode::kExponential), nullptr);
  EXPECT_EQ(Inside(*kernels[1], Opcode::kExponential), nullptr);
  // Neither the scores nor their maxima are stored: of two results one has rows.
  ASSERT_EQ(kernels[0]->shape().tuple.size(), 2u);
  EXPECT_EQ(kernels[0]->shape().tuple[0].rank() + kernels[0]->shape().tuple[1].rank(), 5);

  // A block has all keys, and 1024 registers of 8 x 128: at most 512 of the queries.
  const auto kernel =
      kernels::BuildKernel(*kernels[0], target::Target(configs::LoadConfig("v5e-1x1", {}).value()));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const isa::MxuWork& mxu = kernel->block.mxu;
  EXPECT_EQ(std::max(mxu.m, mxu.n), 2048);
  EXPECT_LE(std::min(mxu.m, mxu.n), 512);
  EXPECT_GT(kernel->block.latency, Cycles(0));
}

// Of 3,072 keys the product and the softmax are apart (and the sums a result of the softmax).
TEST(FuseRows, LongRowsOfAProductAreStored) {
  PassText test(Attention(3072), "v5e-1x1");
  const std::vector<const Instruction*> kernels = KernelsOf(test);
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(Inside(*kernels[0], Opcode::kExponential), nullptr);
}

TEST(FuseRows, ASoftmaxIsOneKernelUnlessItsRowsAreLongOrItHasTwoDimensions) {
  PassText three(Softmax("4,1024,2048", "4,1024", "0,1", 2), "v5e-1x1");
  EXPECT_EQ(KernelsOf(three).size(), 1u);
  PassText middle(Softmax("4,1024,2048", "4,2048", "0,2", 1), "v5e-1x1");
  EXPECT_EQ(KernelsOf(middle).size(), 1u);
  PassText longest(Softmax("4,256,16384", "4,256", "0,1", 2), "v5e-1x1");
  EXPECT_EQ(KernelsOf(longest).size(), 3u);
  PassText two(Softmax("4096,2048", "4096", "0", 1), "v5e-1x1");
  EXPECT_EQ(KernelsOf(two).size(), 3u);
}

// Rows of 4,096 in the middle need blocks of 4096 x 128, 512 registers or 2 MiB: twice in and twice
// out they fit 16 MiB of VMEM, of 8,192 they do not.
TEST(FuseRows, BlocksHoldRowsWhole) {
  PassText test(Softmax("4,4096,1024", "4,1024", "0,2", 1), "v5e-1x1");
  const std::vector<const Instruction*> kernels = KernelsOf(test);
  ASSERT_EQ(kernels.size(), 1u);
  const auto kernel =
      kernels::BuildKernel(*kernels[0], target::Target(configs::LoadConfig("v5e-1x1", {}).value()));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_LE(kernel->Steps(), 4 * 1024 / 128);
  PassText large(Softmax("4,8192,1024", "4,1024", "0,2", 1), "v5e-1x1");
  const std::vector<const Instruction*> more = KernelsOf(large);
  EXPECT_EQ(more.size(), 2u);
  for (const Instruction* k : more) {
    EXPECT_TRUE(
        kernels::BuildKernel(*k, target::Target(configs::LoadConfig("v5e-1x1", {}).value())).ok());
  }
}

// The maximum is that of a row, so it can be made where the wider copy of the row is.
TEST(FuseRows, AConversionThatIsStoredAndAReductionThatMakesItForItselfAreOneKernel) {
  PassText test(fmt::format(R"({}ENTRY e {{
  x = bf16[2048,32000] parameter(0)
  lowest = f32[] constant(-inf)
  wide = f32[2048,32000] convert(x)
  top = f32[2048] reduce(wide, lowest), dimensions={{1}}, to_apply=most
  all = f32[2048,32000] all-reduce(wide), replica_groups={{{{0,1,2,3}}}}, to_apply=plus
  ROOT r = (f32[2048], f32[2048,32000]) tuple(top, all)
}})",
                            kReducers));
  const std::vector<const Instruction*> kernels = KernelsOf(test);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0]->shape().tuple.size(), 2u);
}

TEST(FuseRows, BitsAreReadAsAnotherTypeOnTheWay) {
  PassText test(R"(HloModule m
ENTRY e {
  x = u32[256,512] parameter(0)
  n = u32[256,512] not(x)
  f = f32[256,512] bitcast-convert(n)
  ROOT r = f32[256,512] negate(f)
})");
  EXPECT_EQ(KernelsOf(test).size(), 1u);
}

}  // namespace
}  // namespace tpusim::passes
