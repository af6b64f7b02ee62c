#include "workloads/passes/collectives/async_collectives.h"

#include <gtest/gtest.h>

#include "tests/workloads/passes/pass_test.h"
#include "tests/workloads/passes/small_module.h"

namespace tpusim::passes {
namespace {

TEST(AsyncCollectives, TheStartKnowsWhoSendsToWhom) {
  SmallModule m;
  Instruction* permute = m.Add(Opcode::kCollectivePermute, {256, 512}, {m.Parameter({256, 512})});
  for (int source : {0, 1}) {
    auto* pair = permute->mutable_attrs().add_source_target_pairs();
    pair->set_source(source);
    pair->set_target(1 - source);
  }
  (*permute->mutable_attrs().mutable_frontend_attributes()->mutable_map())["tpusim.axes"] = "x";
  permute->mutable_attrs().mutable_metadata()->set_op_name("f/ppermute");
  m.Return({permute});
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  EXPECT_TRUE(m.Find(Opcode::kCollectivePermute).empty());
  ASSERT_EQ(m.Find(Opcode::kCollectivePermuteStart).size(), 1u);
  ASSERT_EQ(m.Find(Opcode::kCollectivePermuteDone).size(), 1u);
  const auto& start = m.Find(Opcode::kCollectivePermuteStart)[0]->attrs();
  ASSERT_EQ(start.source_target_pairs_size(), 2);
  EXPECT_EQ(start.source_target_pairs(1).source(), 1);
  EXPECT_EQ(start.source_target_pairs(1).target(), 0);
  EXPECT_EQ(start.frontend_attributes().map().at("tpusim.axes"), "x");
  EXPECT_EQ(start.metadata().op_name(), "f/ppermute");
  EXPECT_EQ(m.Find(Opcode::kCollectivePermuteDone)[0]->op_name(), "f/ppermute");
}

// What came behind the permute comes behind its done, what it came behind before its start.
TEST(AsyncCollectives, ControlEdgesStay) {
  PassText test(R"(HloModule m
ENTRY e {
  x = f32[64,512] parameter(0)
  first = f32[64,512] tanh(x)
  moved = f32[64,512] collective-permute(x), source_target_pairs={{0,1},{1,0}}, channel_id=1, control-predecessors={first}
  last = f32[64,512] negate(x), control-predecessors={moved}
  ROOT t = (f32[64,512], f32[64,512], f32[64,512]) tuple(first, moved, last)
})");
  EXPECT_TRUE(test.Run("async-collectives").value());
  EXPECT_EQ(test.text(), Canonical(R"(HloModule m
ENTRY e {
  x = f32[64,512] parameter(0)
  first = f32[64,512] tanh(x)
  start = (f32[64,512], f32[64,512], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,1},{1,0}}, channel_id=1, control-predecessors={first}
  moved = f32[64,512] collective-permute-done(start)
  last = f32[64,512] negate(x), control-predecessors={moved}
  ROOT t = (f32[64,512], f32[64,512], f32[64,512]) tuple(first, moved, last)
})"));
}

}  // namespace
}  // namespace tpusim::passes
