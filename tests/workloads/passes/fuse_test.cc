#include "workloads/passes/fusion/fuse.h"

#include <gtest/gtest.h>

#include "tests/workloads/passes/small_module.h"

namespace tpusim::passes {
namespace {

TEST(Fuse, EveryDecisionHasAReason) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  m.Return({m.Add(Opcode::kNegate, {256, 512}, {t})});
  std::vector<Record> said;
  PassContext context = m.context();
  context.records = Records(&said);
  ASSERT_TRUE(Fuse(m.module(), context).ok());
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(ToString(said[0]).starts_with("tanh is computed in negate: ")) << ToString(said[0]);
  EXPECT_EQ(said[0].reason->id, "fusion.inlined");
  EXPECT_EQ(said[0].subject, "tanh");
}

}  // namespace
}  // namespace tpusim::passes
