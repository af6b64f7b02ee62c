// The amount of work that fusion is. Its results are in fusion/*.hlo.
#include <gtest/gtest.h>

#include "tests/workloads/passes/pass_test.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/passes/fusion/fuse.h"

namespace tpusim::passes {
namespace {

constexpr int64_t kRows = 4096, kColumns = 512;

// A kernel of any length takes as long as one operation: each that is computed in the next
// saves a kernel. Members that were priced in all to fuse a chain of elementwise operations.
int64_t MembersPriced(int length) {
  SmallModule m;
  Instruction* x = m.Parameter({kRows, kColumns});
  for (int n = 0; n < length; ++n) x = m.Add(Opcode::kTanh, {kRows, kColumns}, {x});
  m.Return({x});
  m.costs().candidate = [](const std::string&) { return 10; };
  EXPECT_TRUE(Fuse(m.module(), m.context(), {.results = false}).value());
  return m.costs().members_priced;
}

// Each of 100 alone; each with the next, 99 pairs; then, from the front, each kernel with the
// next operation once: 3 to 100 members. 100 + 2 * 99 + (3 + ... + 100 = 5047) = 5345.
TEST(FuseParts, AKernelThatGrowsIsPricedOncePerOperation) {
  EXPECT_EQ(MembersPriced(100), 5345);
  // Kernels have at most 256 members, so twice the chain costs twice as much.
  EXPECT_LT(MembersPriced(4096), MembersPriced(2048) * 2.1);
}

// Three operations in a row. Two together are worth their while, and all three are not.
TEST(FuseParts, StatedCostsDecide) {
  const auto fused = [](std::map<std::string, int64_t> times) {
    PassText test(R"(HloModule m
ENTRY f {
  p = f32[512,512]{1,0} parameter(0)
  a = f32[512,512]{1,0} tanh(p)
  b = f32[512,512]{1,0} negate(a)
  ROOT c = f32[512,512]{1,0} abs(b)
})");
    test.costs().candidate = [times](const std::string& members) { return times.at(members); };
    EXPECT_TRUE(test.Run("fusion").ok());
    std::string kernels;
    for (const Instruction* i : test.module().entry()->PostOrder()) {
      if (i->opcode() == Opcode::kParameter) continue;
      kernels += i->opcode() == Opcode::kFusion ? "(" : " ";
      if (i->opcode() != Opcode::kFusion) kernels += hlo::OpcodeName(i->opcode());
      if (i->opcode() != Opcode::kFusion) continue;
      for (const Instruction* inner : i->called()[0]->PostOrder()) {
        if (inner->opcode() == Opcode::kParameter) continue;
        kernels += std::string(" ") + std::string(hlo::OpcodeName(inner->opcode()));
      }
      kernels += " )";
    }
    return kernels;
  };
  const std::map<std::string, int64_t> alone = {{"a", 10}, {"b", 10}, {"c", 10}};
  const auto with = [&](std::map<std::string, int64_t> more) {
    more.insert(alone.begin(), alone.end());
    return fused(more);
  };
  // Of nothing gained nothing is made: a kernel of both takes as long as the two.
  EXPECT_EQ(with({{"a + b", 20}, {"b + c", 20}}), " tanh negate abs");
  EXPECT_EQ(with({{"a + b", 19}, {"b + c", 20}, {"a + b + c", 29}}), "( tanh negate ) abs");
  EXPECT_EQ(with({{"a + b", 20}, {"b + c", 19}, {"a + b + c", 29}}), " tanh( negate abs )");
  EXPECT_EQ(with({{"a + b", 19}, {"b + c", 20}, {"a + b + c", 28}}), "( tanh negate abs )");
}

}  // namespace
}  // namespace tpusim::passes
