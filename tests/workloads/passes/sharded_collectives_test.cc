// Reduce-scatters that become one, and all-gathers that become all-reduces.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/workloads/passes/pass_test.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Over four devices; the KiB of each operand, rows of 2 KiB. `reshard`: the partitioner made them.
std::string Scatters(const std::vector<int>& kibibytes, bool reshard = true) {
  std::string text =
      "HloModule m\nplus {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  ROOT s = f32[] add(a, b)\n}\nENTRY e {\n";
  std::string names, shapes;
  for (size_t n = 0; n < kibibytes.size(); ++n) {
    text += fmt::format(
        "  x{0} = f32[{1},512] parameter({0})\n  s{0} = f32[{2},512] reduce-scatter(x{0}), "
        "dimensions={{0}}, replica_groups={{{{0,1,2,3}}}}, to_apply=plus{3}\n",
        n, kibibytes[n] / 2, kibibytes[n] / 8,
        reshard ? ", frontend_attributes={tpusim.reshard=\"true\"}" : "");
    names += fmt::format("{}s{}", n > 0 ? ", " : "", n);
    shapes += fmt::format("{}f32[{},512]", n > 0 ? ", " : "", kibibytes[n] / 8);
  }
  return text + fmt::format("  ROOT r = ({}) tuple({})\n}}", shapes, names);
}

std::vector<size_t> Sizes(PassText& test) {
  std::vector<size_t> sizes;
  for (const Instruction* i : test.module().entry()->PostOrder()) {
    if (i->opcode() == Opcode::kReduceScatter) sizes.push_back(i->operands().size());
  }
  return sizes;
}

// 6 + 0.5 + 0.5 MiB and four quarters of each twice are 14 MiB, half a MiB more is 15 of 16.
TEST(CombineReduceScatters, AsMuchAsTheKernelCanHold) {
  PassText test(Scatters({6144, 512, 512, 512, 512}));
  EXPECT_TRUE(test.Run("combine-reduce-scatters").value());
  EXPECT_EQ(Sizes(test), (std::vector<size_t>{3, 2}));
  EXPECT_FALSE(test.Run("combine-reduce-scatters").value());
  PassText twice(Scatters({6144, 512, 512, 512, 512}), "v6e-2x2");
  EXPECT_TRUE(twice.Run("combine-reduce-scatters").value());
  EXPECT_EQ(Sizes(twice), (std::vector<size_t>{5}));
}

TEST(CombineReduceScatters, NotWhatTheProgramStatesNorOnTwoCores) {
  PassText stated(Scatters({512, 512}, false));
  EXPECT_FALSE(stated.Run("combine-reduce-scatters").value());
  PassText two_cores(Scatters({512, 512}), "v5p-2x2x1");
  EXPECT_FALSE(two_cores.Run("combine-reduce-scatters").value());
}

TEST(CombineReduceScatters, AlongWhateverDimension) {
  PassText test(R"(HloModule m
plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[8,128] parameter(0)
  y = f32[4,16,8]{1,0,2} parameter(1)
  a = f32[2,128] reduce-scatter(x), dimensions={0}, replica_groups={{0,1,2,3}}, to_apply=plus, frontend_attributes={tpusim.reshard="true"}
  b = f32[4,16,2]{1,0,2} reduce-scatter(y), dimensions={2}, replica_groups={{0,1,2,3}}, to_apply=plus, frontend_attributes={tpusim.reshard="true"}
  ROOT r = (f32[2,128], f32[4,16,2]{1,0,2}) tuple(a, b)
})");
  EXPECT_TRUE(test.Run("combine-reduce-scatters").value());
  EXPECT_TRUE(HasLines(test.text(), R"(*f32[8,4,16]{2,1,0} bitcast(*
*(f32[2,128]*f32[2,4,16]{2,1,0}) reduce-scatter(*dimensions={0}*
*f32[4,16,2]{1,0,2} bitcast(*)"));
}

// What is read by products alone crosses devices as what they multiply; not if it is read by more,
// or if the product multiplies float32.
TEST(RoundBeforeExchange, WhatOnlyProductsReadIsRounded) {
  constexpr std::string_view kText = R"(HloModule m
ENTRY e {
  x = f32[256,64] parameter(0)
  w = f32[128,512] parameter(1)
  g = f32[256,128] all-gather(x), dimensions={1}, replica_groups={{0,1},{2,3}}
  ROOT p = f32[256,512] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0})";
  PassText rounded(std::string(kText) + "\n}");
  EXPECT_TRUE(rounded.Run("round-before-exchange").value());
  EXPECT_TRUE(HasLines(rounded.text(), R"(*bf16[256,64]* convert(*
*bf16[256,128]* all-gather(*)"));
  PassText exact(std::string(kText) + ", operand_precision={highest,highest}\n}");
  EXPECT_FALSE(exact.Run("round-before-exchange").value());
  PassText read_by_more(R"(HloModule m
ENTRY e {
  x = f32[256,64] parameter(0)
  w = f32[128,512] parameter(1)
  g = f32[256,128] all-gather(x), dimensions={1}, replica_groups={{0,1},{2,3}}
  n = f32[256,128] negate(g)
  p = f32[256,512] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[256,512], f32[256,128]) tuple(p, n)
})");
  EXPECT_FALSE(read_by_more.Run("round-before-exchange").value());
}

std::string GatheredVector(const std::string& shape, const std::string& whole) {
  return fmt::format(R"(HloModule m
ENTRY e {{
  x = {} parameter(0)
  ROOT g = {} all-gather(x), dimensions={{0}}, replica_groups={{{{0,1,2,3}}}}
}})",
                     shape, whole);
}

TEST(NarrowAllGathers, FewerElementsThanLanes) {
  PassText narrow(GatheredVector("bf16[127]", "bf16[508]"));
  EXPECT_TRUE(narrow.Run("narrow-all-gathers").value());
  EXPECT_TRUE(HasLines(narrow.text(), R"(*bf16[508]*dynamic-update-slice(*
*bf16[508]*all-reduce(*replica_groups={{0,1,2,3}}*)"));
  EXPECT_EQ(narrow.text().find("all-gather"), std::string::npos);
  PassText wide(GatheredVector("bf16[128]", "bf16[512]"));
  EXPECT_FALSE(wide.Run("narrow-all-gathers").value());
  PassText rows(GatheredVector("bf16[1,16]", "bf16[4,16]"));
  EXPECT_FALSE(rows.Run("narrow-all-gathers").value());
}

}  // namespace
}  // namespace tpusim::passes
