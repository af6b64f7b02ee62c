// Fewer all-reduces: sums before them instead of after, and several in one.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/workloads/passes/pass_test.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/collectives/combine_all_reduces.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr char kPlus[] = R"(HloModule m
plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
)";
constexpr char kOfAll[] = "replica_groups={{0,1,2,3}}, to_apply=plus";
constexpr char kOfPairs[] = "replica_groups={{0,1},{2,3}}, to_apply=plus";

// Operands of every all-reduce, as they come in the program.
std::vector<size_t> Sizes(PassText& test) {
  std::vector<size_t> sizes;
  for (const Instruction* i : test.module().entry()->PostOrder()) {
    if (i->opcode() == Opcode::kAllReduce) sizes.push_back(i->operands().size());
  }
  return sizes;
}

TEST(AllReduces, ThoseThatDoNotWaitForOneAnotherBecomeOne) {
  PassText test(fmt::format(R"({0}ENTRY e {{
  x = f32[8,128] parameter(0)
  y = f32[256] parameter(1)
  a = f32[8,128] all-reduce(x), {1}
  b = f32[256] all-reduce(y), {1}
  ROOT r = (f32[8,128], f32[256]) tuple(a, b)
}})",
                            kPlus, kOfAll));
  EXPECT_TRUE(test.Run("combine-all-reduces").value());
  EXPECT_EQ(test.text(), Canonical(fmt::format(R"({0}ENTRY e {{
  x = f32[8,128] parameter(0)
  y = f32[256] parameter(1)
  c = (f32[8,128], f32[256]) all-reduce(x, y), {1}
  a = f32[8,128] get-tuple-element(c), index=0
  b = f32[256] get-tuple-element(c), index=1
  ROOT r = (f32[8,128], f32[256]) tuple(a, b)
}})",
                                               kPlus, kOfAll)));
  EXPECT_FALSE(test.Run("combine-all-reduces").value());
}

TEST(AllReduces, OthersOfTheSameGroupsStayApart) {
  PassText test(fmt::format(R"({0}most {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}}
ENTRY e {{
  x = f32[256] parameter(0)
  y = bf16[256] parameter(1)
  a = f32[256] all-reduce(x), {1}
  b = f32[256] all-reduce(x), {2}
  c = f32[256] all-reduce(x), replica_groups={{{{0,1,2,3}}}}, to_apply=most
  d = bf16[256] all-reduce(y), {1}
  ROOT r = (f32[256], f32[256], f32[256], bf16[256]) tuple(a, b, c, d)
}})",
                            kPlus, kOfAll, kOfPairs));
  EXPECT_FALSE(test.Run("combine-all-reduces").value());
}

// The second waits for the first; the third for none, and joins the second.
TEST(AllReduces, WhatWaitsBeginsAnew) {
  PassText test(fmt::format(R"({0}ENTRY e {{
  x = f32[256] parameter(0)
  a = f32[256] all-reduce(x), {1}
  t = f32[256] tanh(a)
  b = f32[256] all-reduce(t), {1}
  n = f32[256] negate(x)
  c = f32[256] all-reduce(n), {1}
  ROOT r = (f32[256], f32[256], f32[256]) tuple(a, b, c)
}})",
                            kPlus, kOfAll));
  EXPECT_TRUE(test.Run("combine-all-reduces").value());
  EXPECT_EQ(Sizes(test), (std::vector<size_t>{1, 2}));
}

// a and d could be one, and so could b and c, but not both: d waits for c and b for a.
TEST(AllReduces, TwoThatWaitForEachOtherCrosswiseAreNotMade) {
  PassText test(fmt::format(R"({0}ENTRY e {{
  x = f32[256] parameter(0)
  a = f32[256] all-reduce(x), {1}
  t = f32[256] tanh(a)
  b = f32[256] all-reduce(t), {2}
  n = f32[256] negate(x)
  c = f32[256] all-reduce(n), {2}
  u = f32[256] tanh(c)
  d = f32[256] all-reduce(u), {1}
  ROOT r = (f32[256], f32[256], f32[256], f32[256]) tuple(a, b, c, d)
}})",
                            kPlus, kOfAll, kOfPairs));
  EXPECT_TRUE(test.Run("combine-all-reduces").value());  // and the verifier finds no cycle
  EXPECT_EQ(Sizes(test), (std::vector<size_t>{1, 2, 1}));
}

// 120 MiB are three arrays of 32 MiB, as the TPU compiler has it, and 256 arrays are enough.
TEST(AllReduces, NotTooMuchAtOnce) {
  const auto many = [](int count, const std::string& shape) {
    std::string text = fmt::format("{}ENTRY e {{\n  x = {} parameter(0)\n", kPlus, shape);
    std::string names, shapes;
    for (int n = 0; n < count; ++n) {
      text += fmt::format(
          "  s{0} = f32[] constant({0})\n  b{0} = {1} broadcast(s{0}), dimensions={{}}\n"
          "  m{0} = {1} multiply(x, b{0})\n  a{0} = {1} all-reduce(m{0}), {2}\n",
          n, shape, kOfAll);
      names += fmt::format("{}a{}", n > 0 ? ", " : "", n);
      shapes += (n > 0 ? ", " : "") + shape;
    }
    return text + fmt::format("  ROOT r = ({}) tuple({})\n}}", shapes, names);
  };
  PassText large(many(7, "f32[8192,1024]"));
  EXPECT_TRUE(large.Run("combine-all-reduces").value());
  EXPECT_EQ(Sizes(large), (std::vector<size_t>{1, 3, 3}));  // the last is alone
  PassText small(many(300, "f32[1024]"));
  EXPECT_TRUE(small.Run("combine-all-reduces").value());
  EXPECT_EQ(Sizes(small), (std::vector<size_t>{256, 44}));
}

// 100, 30, 10, 60 and 10 MiB: the small ones go where the first is.
TEST(AllReduces, TheFirstWithRoom) {
  std::string text = fmt::format("{}ENTRY e {{\n", kPlus);
  const std::vector<int> mebibytes = {100, 30, 10, 60, 10};
  std::string names, shapes;
  for (size_t n = 0; n < mebibytes.size(); ++n) {
    const std::string shape = fmt::format("f32[{},262144]", mebibytes[n]);
    text += fmt::format("  x{0} = {1} parameter({0})\n  a{0} = {1} all-reduce(x{0}), {2}\n", n,
                        shape, kOfAll);
    names += fmt::format("{}a{}", n > 0 ? ", " : "", n);
    shapes += (n > 0 ? ", " : "") + shape;
  }
  PassText test(text + fmt::format("  ROOT r = ({}) tuple({})\n}}", shapes, names));
  EXPECT_TRUE(test.Run("combine-all-reduces").value());
  EXPECT_EQ(Sizes(test), (std::vector<size_t>{3, 2}));  // 100 + 10 + 10, 30 + 60
}

// 160 MiB in f32 are 80 in bf16.
TEST(AllReduces, WhatIsRoundedAfterwardsCountsHalf) {
  PassText test(fmt::format(R"({0}ENTRY e {{
  x = f32[80,262144] parameter(0)
  y = f32[80,262144] parameter(1)
  a = f32[80,262144] all-reduce(x), {1}
  b = f32[80,262144] all-reduce(y), {1}
  t = f32[262144,80] transpose(a), dimensions={{1,0}}
  c = bf16[262144,80] convert(t)
  d = bf16[80,262144] convert(b)
  ROOT r = (bf16[262144,80], bf16[80,262144]) tuple(c, d)
}})",
                            kPlus, kOfAll));
  EXPECT_TRUE(test.Run("combine-all-reduces").value());
  EXPECT_EQ(Sizes(test), (std::vector<size_t>{2}));
}

TEST(AllReduces, ASumOfThreeIsSummedBefore) {
  PassText test(fmt::format(R"({0}ENTRY e {{
  x = f32[256] parameter(0)
  y = f32[256] parameter(1)
  z = f32[256] parameter(2)
  a = f32[256] all-reduce(x), {1}
  b = f32[256] all-reduce(y), {1}
  c = f32[256] all-reduce(z), {1}
  s = f32[256] add(a, b)
  ROOT r = f32[256] add(s, c)
}})",
                            kPlus, kOfAll));
  EXPECT_TRUE(test.Run("reassociate-all-reduces").value());
  EXPECT_EQ(test.text(), Canonical(fmt::format(R"({0}ENTRY e {{
  x = f32[256] parameter(0)
  y = f32[256] parameter(1)
  z = f32[256] parameter(2)
  s = f32[256] add(x, y)
  t = f32[256] add(s, z)
  ROOT r = f32[256] all-reduce(t), {1}
}})",
                                               kPlus, kOfAll)));
}

TEST(AllReduces, WhatIsReadApartOrSummedOtherwiseStays) {
  PassText test(fmt::format(R"({0}ENTRY e {{
  x = f32[256] parameter(0)
  y = f32[256] parameter(1)
  a = f32[256] all-reduce(x), {1}
  b = f32[256] all-reduce(y), {1}
  c = f32[256] all-reduce(y), {2}
  s = f32[256] add(a, b)
  p = f32[256] maximum(b, b)
  q = f32[256] add(s, c)
  ROOT r = (f32[256], f32[256]) tuple(p, q)
}})",
                            kPlus, kOfAll, kOfPairs));
  EXPECT_FALSE(test.Run("reassociate-all-reduces").value());
}

}  // namespace
}  // namespace tpusim::passes
