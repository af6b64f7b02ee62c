// A removed instruction leaves the graph at once, answers nothing but removed(), and is freed by
// Cleanup(); walks pass over it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// main: negate(p), with tanh(p) beside it that nothing reads.
struct OneDead {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* dead = t.Add(Opcode::kTanh, F32({4}), {p});
  Instruction* before = t.entry()->Add(Opcode::kCopy, F32({4}), {p});
  Instruction* root = t.Add(Opcode::kNegate, F32({4}), {p});

  OneDead() {
    dead->AddControlPredecessor(before);
    t.entry()->set_schedule({p, before, dead, root});
  }
};

TEST(Removal, UnlinksAtOnceAndFreesLater) {
  OneDead m;
  EXPECT_FALSE(m.dead->removed());
  m.t.entry()->Remove(m.dead);
  EXPECT_TRUE(m.dead->removed());
  EXPECT_THAT(m.t.entry()->instructions(), ElementsAre(m.p, m.before, m.root));
  EXPECT_THAT(m.t.entry()->schedule(), ElementsAre(m.p, m.before, m.root));
  EXPECT_THAT(m.p->users(), ElementsAre(m.before, m.root));
  EXPECT_THAT(m.before->control_successors(), IsEmpty());
  EXPECT_EQ(m.t.module().num_removed(), 1);
  m.t.module().Cleanup();
  EXPECT_EQ(m.t.module().num_removed(), 0);
  EXPECT_TRUE(Verify(m.t.module()).ok());
}

TEST(RemovalDeathTest, ARemovedInstructionAnswersNothing) {
  OneDead m;
  Instruction* dead = m.dead;
  m.t.entry()->Remove(dead);
  const char* says = "instruction tanh was removed, and something still asks it";
  EXPECT_DEATH(dead->opcode(), says);
  EXPECT_DEATH(dead->name(), says);
  EXPECT_DEATH(dead->id(), says);
  EXPECT_DEATH(dead->shape(), says);
  EXPECT_DEATH(dead->set_shape(F32({4})), says);
  EXPECT_DEATH(dead->parent(), says);
  EXPECT_DEATH(dead->operands(), says);
  EXPECT_DEATH(dead->operand(0), says);
  EXPECT_DEATH(dead->users(), says);
  EXPECT_DEATH(dead->ReplaceOperand(0, m.root), says);
  EXPECT_DEATH(dead->ReplaceAllUsesWith(m.root), says);
  EXPECT_DEATH(dead->called(), says);
  EXPECT_DEATH(dead->set_called({}), says);
  EXPECT_DEATH(dead->control_predecessors(), says);
  EXPECT_DEATH(dead->control_successors(), says);
  EXPECT_DEATH(dead->has_control_edges(), says);
  EXPECT_DEATH(dead->AddControlPredecessor(m.root), says);
  EXPECT_DEATH(dead->MoveControlTo(m.root, m.root), says);
  EXPECT_DEATH(dead->attrs(), says);
  EXPECT_DEATH(dead->mutable_attrs(), says);
  EXPECT_DEATH(dead->set_attrs({}), says);
  EXPECT_DEATH(dead->AttributeBytes(), says);
  EXPECT_DEATH(dead->IsRoot(), says);
  EXPECT_DEATH(dead->HasSideEffect(), says);
  EXPECT_DEATH(dead->op_name(), says);
  EXPECT_DEATH(dead->SourceLocation(), says);
  EXPECT_DEATH(dead->Describe(), says);
}

TEST(RemovalDeathTest, NothingTakesARemovedInstruction) {
  OneDead m;
  Computation* entry = m.t.entry();
  Instruction* dead = m.dead;
  entry->Remove(dead);
  const char* says = "instruction tanh was removed";
  EXPECT_DEATH(entry->Add(Opcode::kNegate, F32({4}), {dead}), says);
  EXPECT_DEATH(entry->Add(Opcode::kNegate, F32({4}), {m.p}, "", dead), says);
  EXPECT_DEATH(entry->set_root(dead), says);
  EXPECT_DEATH(entry->Remove(dead), says);
  EXPECT_DEATH(m.root->ReplaceOperand(0, dead), says);
  EXPECT_DEATH(m.root->ReplaceAllUsesWith(dead), says);
  EXPECT_DEATH(m.root->AddControlPredecessor(dead), says);
}

TEST(RemovalDeathTest, OfWhatIsDead) {
  OneDead m;
  Instruction* more = m.t.entry()->Add(Opcode::kAbs, F32({4}), {m.dead});
  std::vector<const Instruction*> removed;
  EXPECT_EQ(m.t.entry()->RemoveDead(&removed), 3);
  EXPECT_THAT(removed, ElementsAre(m.dead, m.before, more));
  EXPECT_THAT(m.t.entry()->schedule(), ElementsAre(m.p, m.root));
  EXPECT_EQ(m.t.module().num_removed(), 3);
  EXPECT_DEATH(more->operands(), "instruction abs was removed");
}

// Removes an inlined call, and the computations that nothing calls any more.
TEST(RemovalDeathTest, OfCallsAndComputations) {
  TestModule t;
  Computation* callee = t.module().AddComputation("callee");
  Instruction* inner = TestModule::Add(callee, Opcode::kTanh, F32({4}),
                                       {TestModule::Param(callee, F32({4}))});
  Instruction* call = t.Add(Opcode::kCall, F32({4}), {t.Param(F32({4}))});
  call->set_called({callee});
  t.module().InlineCall(call);
  EXPECT_TRUE(call->removed());
  EXPECT_DEATH(call->called(), "instruction call was removed");
  EXPECT_FALSE(callee->removed());
  t.module().RemoveUnreachable();
  EXPECT_TRUE(callee->removed());
  EXPECT_TRUE(inner->removed());
  const char* says = "computation callee was removed, and something still asks it";
  EXPECT_DEATH(callee->name(), says);
  EXPECT_DEATH(callee->parent(), says);
  EXPECT_DEATH(callee->root(), says);
  EXPECT_DEATH(callee->set_root(nullptr), says);
  EXPECT_DEATH(callee->size(), says);
  EXPECT_DEATH(callee->instructions(), says);
  EXPECT_DEATH(callee->AddedSince(0), says);
  EXPECT_DEATH(callee->PostOrder(), says);
  EXPECT_DEATH(callee->parameters(), says);
  EXPECT_DEATH(callee->schedule(), says);
  EXPECT_DEATH(callee->set_schedule({}), says);
  EXPECT_DEATH(callee->Order(), says);
  EXPECT_DEATH(callee->DropOrder(), says);
  EXPECT_DEATH(callee->attrs(), says);
  EXPECT_DEATH(callee->mutable_attrs(), says);
  EXPECT_DEATH(callee->RemoveDead(), says);
  EXPECT_DEATH(callee->Add(Opcode::kIota, F32({4}), {}), says);
  EXPECT_DEATH(inner->opcode(), "instruction tanh was removed");
  EXPECT_EQ(t.module().num_removed(), 3);  // the call; the callee's parameter and tanh
  t.module().Cleanup();
  EXPECT_EQ(t.module().num_removed(), 0);
  EXPECT_TRUE(Verify(t.module()).ok());
}

// The last call takes the callee's instructions over; those that were there are removed.
TEST(Removal, OfCalleesThatAreInlined) {
  TestModule t;
  Computation* callee = t.module().AddComputation("callee");
  Instruction* inner = TestModule::Add(callee, Opcode::kTanh, F32({4}),
                                       {TestModule::Param(callee, F32({4}))});
  Instruction* call = t.Add(Opcode::kCall, F32({4}), {t.Param(F32({4}))});
  call->set_called({callee});
  EXPECT_EQ(t.module().InlineCalls([](const Instruction&) { return true; }), 1);
  EXPECT_TRUE(call->removed());
  EXPECT_TRUE(callee->removed());
  EXPECT_TRUE(inner->removed());
  EXPECT_EQ(t.entry()->root()->name(), "tanh");
  t.module().Cleanup();
  EXPECT_TRUE(Verify(t.module()).ok());
}

TEST(Removal, ACopyOfAModuleHasNothingOfIt) {
  OneDead m;
  m.t.entry()->Remove(m.dead);
  const std::unique_ptr<Module> clone = m.t.module().Clone();
  EXPECT_EQ(clone->num_removed(), 0);
  EXPECT_EQ(clone->entry()->size(), 3u);
}

// p -> a -> b -> c: at a, b goes and d comes; at c, c itself goes.
TEST(Walks, SkipWhatIsRemovedAndWhatIsAdded) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* a = t.Add(Opcode::kTanh, F32({4}), {p});
  Instruction* b = t.Add(Opcode::kNegate, F32({4}), {a});
  Instruction* c = t.Add(Opcode::kAbs, F32({4}), {b});
  std::vector<const Instruction*> seen;
  for (Instruction* i : Walk(t.entry()->PostOrder())) {
    seen.push_back(i);
    if (i == a) {
      b->ReplaceAllUsesWith(t.entry()->Add(Opcode::kFloor, F32({4}), {a}, "d"));
      t.entry()->Remove(b);
    } else if (i == c) {
      c->ReplaceAllUsesWith(p);
      t.entry()->Remove(c);
    }
  }
  EXPECT_THAT(seen, ElementsAre(p, a, c));
  // All of them at once, the first included.
  Instruction* d = p->users()[0]->users()[0];
  EXPECT_EQ(d->name(), "d");
  const Walk all(std::vector<Instruction*>{d, p});
  t.entry()->Remove(d);
  EXPECT_EQ(*all.begin(), p);
  EXPECT_EQ(std::distance(all.begin(), all.end()), 1);
}

// The list of users is that of the beginning, although each of them leaves it.
TEST(Walks, OverUsersThatChange) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* q = t.Param(F32({4}));
  std::vector<Instruction*> users;
  for (int n = 0; n < 5; ++n) users.push_back(t.Add(Opcode::kTanh, F32({4}), {p}));
  for (Instruction* user : Walk(p->users())) user->ReplaceOperand(0, q);
  EXPECT_THAT(p->users(), IsEmpty());
  EXPECT_EQ(q->users(), users);
}

TEST(Walks, OverComputations) {
  TestModule t;
  Computation* unused = t.module().AddComputation("unused");
  TestModule::Param(unused, F32({4}));
  t.Param(F32({4}));
  std::vector<Computation*> seen;
  for (Computation* c : Walk(t.module().computations())) {
    seen.push_back(c);
    t.module().RemoveUnreachable();
  }
  EXPECT_THAT(seen, ElementsAre(t.entry()));
}

}  // namespace
}  // namespace tpusim::hlo
