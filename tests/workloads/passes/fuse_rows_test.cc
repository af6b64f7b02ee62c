// Blocks of kernels that compute row by row; what becomes one kernel is in fusion/*.hlo.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/workloads/passes/pass_test.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/tiling/kernels.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;

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

isa::Kernel KernelOf(const Instruction& i) {
  const configs::Config config = configs::LoadConfig("v5e-1x1", {}).value();
  const auto kernel = kernels::BuildKernel(i, target::Target(config));
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? *kernel : isa::Kernel{};
}

// The product with the exponentials of its rows: a block has all keys, and 1024 registers of
// 8 x 128, at most 512 of the queries.
TEST(FuseRows, ABlockOfAttentionHasAllKeys) {
  PassText test(Attention(2048), "v5e-1x1");
  const isa::Block block = KernelOf(*KernelsOf(test)[0]).block;
  EXPECT_EQ(std::max(block.mxu.m, block.mxu.n), 2048);
  EXPECT_LE(std::min(block.mxu.m, block.mxu.n), 512);
  EXPECT_GT(block.latency, Cycles(0));
}

// Rows of 4,096 in the middle need blocks of 4096 x 128, 512 registers or 2 MiB: twice in and twice
// out they fit 16 MiB of VMEM, of 8,192 they do not.
TEST(FuseRows, BlocksHoldRowsWhole) {
  PassText test(Softmax("4,4096,1024", "4,1024", "0,2", 1), "v5e-1x1");
  EXPECT_LE(KernelOf(*KernelsOf(test)[0]).Steps(), 4 * 1024 / 128);
  PassText large(Softmax("4,8192,1024", "4,1024", "0,2", 1), "v5e-1x1");
  for (const Instruction* kernel : KernelsOf(large)) EXPECT_GT(KernelOf(*kernel).Steps(), 0);
}

}  // namespace
}  // namespace tpusim::passes
