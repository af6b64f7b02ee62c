// How much work fusion is. What becomes one kernel is in fusion/*.hlo.
#include <gtest/gtest.h>

#include "tests/workloads/passes/small_module.h"
#include "workloads/passes/fusion/explanation.h"
#include "workloads/passes/fusion/graph.h"
#include "workloads/passes/fusion/inline_producers.h"
#include "workloads/passes/fusion/plan.h"
#include "workloads/passes/fusion/price.h"

namespace tpusim::passes {
namespace {

constexpr int64_t kRows = 4096, kColumns = 512;

// Members that were priced in all to fuse a chain of elementwise operations.
int64_t MembersPriced(int length) {
  SmallModule m;
  Instruction* x = m.Parameter({kRows, kColumns});
  for (int n = 0; n < length; ++n) x = m.Add(Opcode::kTanh, {kRows, kColumns}, {x});
  m.Return({x});
  const fusion::Graph graph(m.entry());
  fusion::Pricing pricing(graph, m.target());
  fusion::Plan plan(graph, pricing);
  fusion::Explanation silent(nullptr);
  fusion::InlineProducers(plan, silent);
  return pricing.members_priced();
}

// Each of 100 alone; each with the next, 99 pairs; then, from the front, each kernel with the
// next operation once: 3 to 100 members. 100 + 2 * 99 + (3 + ... + 100 = 5047) = 5345.
TEST(FuseParts, AKernelThatGrowsIsPricedOncePerOperation) {
  EXPECT_EQ(MembersPriced(100), 5345);
  // Kernels have at most 256 members, so twice the chain costs twice as much.
  EXPECT_LT(MembersPriced(4096), MembersPriced(2048) * 2.1);
}

}  // namespace
}  // namespace tpusim::passes
