// Products with collectives: windowed where it pays, all-gathers repeated where they are far apart,
// narrow reduce-scatters widened.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/passes/pass_test.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Opcode;

// Static counts over the whole module.
int64_t CountOf(PassText& test, Opcode opcode) {
  int64_t count = 0;
  for (const hlo::Computation* computation : test.module().computations()) {
    for (const hlo::Instruction* i : computation->instructions()) count += i->opcode() == opcode;
  }
  return count;
}

constexpr char kGroup[] =
    R"(replica_groups={{{{0,1,2,3}}}}, frontend_attributes={{tpusim.axes="x",tpusim.reshard="true"}})";

// bf16[rows,1024] times a bf16[1024,512] of which four devices have 256 rows each.
std::string Gathered(int64_t rows, const std::string& more = "") {
  return fmt::format(R"(HloModule m
ENTRY e {{
  x = bf16[{0},1024] parameter(0)
  w = bf16[256,512] parameter(1)
  g = bf16[1024,512] all-gather(w), dimensions={{0}}, {1}
  {2}ROOT d = bf16[{0},512] dot(x, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, frontend_attributes={{tpusim.split_over="x"}}
}})",
                     rows, fmt::format(kGroup), more);
}

// v5e has 2190 FLOPs per byte: 1095 are needed by a group of four, and a row is one.
TEST(WindowedEinsum, WhereItPays) {
  PassText little(Gathered(1088), "v5e-4x2");
  EXPECT_FALSE(little.Run("windowed-einsum").value());
  PassText enough(Gathered(1096), "v5e-4x2");
  EXPECT_TRUE(enough.Run("windowed-einsum").value());
  EXPECT_EQ(CountOf(enough, Opcode::kAllGather), 0);
  // One ahead, and one each way between two steps.
  EXPECT_EQ(CountOf(enough, Opcode::kCollectivePermute), 3);
  EXPECT_EQ(CountOf(enough, Opcode::kDot), 2);
  EXPECT_EQ(CountOf(enough, Opcode::kWhile), 0);
  PassText plane(Gathered(1096), "v5e-4x2");
  plane.costs().filled_extents = {2, 2};
  EXPECT_FALSE(plane.Run("windowed-einsum").value());
  // On large slices too, also where permutes are synchronous.
  PassText routed(Gathered(1096), "v5e-8x8");
  EXPECT_TRUE(routed.Run("windowed-einsum").value());
  PassText routed_little(Gathered(1088), "v5e-8x8");
  EXPECT_FALSE(routed_little.Run("windowed-einsum").value());
}

// Weights that pairs share are gathered: there are no windowed einsums of two. The sums over four
// devices then pass by.
TEST(WindowedEinsum, TheOtherFormWhereOneDoesNotPay) {
  PassText test(R"(HloModule m
add {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b)
}
ENTRY e {
  x = bf16[4096,4096] parameter(0)
  w = bf16[4096,256] parameter(1)
  g = bf16[4096,512] all-gather(w), dimensions={1}, replica_groups={{0,1},{2,3}}, frontend_attributes={tpusim.axes="y",tpusim.reshard="true"}
  d = bf16[4096,512] dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, frontend_attributes={tpusim.split_over="x,y"}
  ROOT r = bf16[1024,512] reduce-scatter(d), dimensions={0}, replica_groups={{0,1,2,3}}, to_apply=add, frontend_attributes={tpusim.axes="x",tpusim.reshard="true"}
})",
                "v5e-4x2");
  EXPECT_TRUE(test.Run("windowed-einsum").value());
  EXPECT_EQ(CountOf(test, Opcode::kAllGather), 1);
  EXPECT_EQ(CountOf(test, Opcode::kReduceScatter), 0);
  EXPECT_GT(CountOf(test, Opcode::kCollectivePermute), 0);
}

// A weight that is gathered a second time is gathered.
TEST(WindowedEinsum, NotOfWhatIsGatheredTwice) {
  PassText test(Gathered(4096, fmt::format(R"(h = bf16[1024,512] all-gather(w), dimensions={{0}}, {}
  c = token[] after-all()
  )",
                                           fmt::format(kGroup))),
                "v5e-4x2");
  EXPECT_FALSE(test.Run("windowed-einsum").value());
}

// Two products `between` instructions apart read one all-gather.
std::string ReadTwice(int between) {
  std::string text = fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[8,8] parameter(0)
  w = f32[2,8] parameter(1)
  g = f32[8,8] all-gather(w), dimensions={{0}}, {}
  a0 = f32[8,8] dot(x, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
)",
                                 fmt::format(kGroup));
  for (int n = 0; n < between; ++n) text += fmt::format("  a{} = f32[8,8] tanh(a{})\n", n + 1, n);
  return text + fmt::format(
                    "  ROOT d = f32[8,8] dot(a{}, g), lhs_contracting_dims={{1}}, "
                    "rhs_contracting_dims={{1}}\n}}",
                    between);
}

// The first product is between + 1 above the second, the second all-gather would be one above it.
TEST(RepeatAllGathers, WhereUsesAreFarApart) {
  PassText near(ReadTwice(100));
  EXPECT_FALSE(near.Run("repeat-all-gathers").value());
  PassText far(ReadTwice(101));
  EXPECT_TRUE(far.Run("repeat-all-gathers").value());
  EXPECT_EQ(CountOf(far, Opcode::kAllGather), 2);
  EXPECT_FALSE(far.Run("repeat-all-gathers").value());
}

std::string Scattered(int64_t columns, const std::string& type = "f32",
                      const std::string& group = fmt::format(kGroup)) {
  return fmt::format(R"(HloModule m
plus {{
  a = {0}[] parameter(0)
  b = {0}[] parameter(1)
  ROOT s = {0}[] add(a, b)
}}
ENTRY e {{
  x = {0}[8,{1}] parameter(0)
  ROOT s = {0}[8,{2}] reduce-scatter(x), dimensions={{1}}, to_apply=plus, {3}
}})",
                     type, 4 * columns, columns, group);
}

TEST(NarrowReduceScatters, FewerThan512BytesInARow) {
  PassText wide(Scattered(128));
  EXPECT_FALSE(wide.Run("narrow-reduce-scatters").value());
  PassText narrow(Scattered(127));
  EXPECT_TRUE(narrow.Run("narrow-reduce-scatters").value());
  EXPECT_TRUE(HasLines(narrow.text(), R"(*f32[8,508]*all-reduce(*
*f32[8,127]*dynamic-slice(*)"));
}

TEST(NarrowReduceScatters, Integers) {
  const std::string stated = "replica_groups={{0,1,2,3}}";
  PassText real(Scattered(127, "f32", stated));
  EXPECT_FALSE(real.Run("narrow-reduce-scatters").value());
  PassText whole(Scattered(128, "s32", stated));
  EXPECT_TRUE(whole.Run("narrow-reduce-scatters").value());
}

}  // namespace
}  // namespace tpusim::passes
