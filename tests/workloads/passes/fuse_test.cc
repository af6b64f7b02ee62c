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
  std::vector<std::string> lines;
  PassContext context(m.target());
  context.explanation = &lines;
  ASSERT_TRUE(Fuse(m.module(), context).ok());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("tanh is computed in negate: ")) << lines[0];
}

}  // namespace
}  // namespace tpusim::passes
