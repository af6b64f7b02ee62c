#include "workloads/hlo/ir/ir.h"

#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(InstructionTest, UsersAreKeptOnceAndInOrder) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* square = t.Add(Opcode::kMultiply, F32({4}), {p, p});
  Instruction* sum = t.Add(Opcode::kAdd, F32({4}), {square, p});
  EXPECT_THAT(p->users(), ElementsAre(square, sum));
  EXPECT_EQ(square->id(), p->id() + 1);

  Instruction* q = t.Add(Opcode::kNegate, F32({4}), {p});
  square->ReplaceOperand(0, q);
  EXPECT_THAT(p->users(), ElementsAre(square, sum, q));  // still operand 1
  square->ReplaceOperand(1, q);
  EXPECT_THAT(p->users(), ElementsAre(sum, q));
  EXPECT_THAT(q->users(), ElementsAre(square));
}

TEST(InstructionTest, ReplaceAllUsesMovesTheRootAndSparesTheReplacement) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* a = t.Add(Opcode::kTanh, F32({4}), {p});
  Instruction* b = t.Add(Opcode::kNegate, F32({4}), {a});
  t.entry()->set_root(a);
  a->ReplaceAllUsesWith(b);  // b itself goes on reading a
  EXPECT_EQ(b->operand(0), a);
  EXPECT_TRUE(b->IsRoot());
  EXPECT_FALSE(a->IsRoot());
}

TEST(InstructionTest, NamesAreUniqueAndCountOn) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  EXPECT_EQ(t.entry()->Add(Opcode::kTanh, F32({4}), {p}, "add.3")->name(), "add.3");
  EXPECT_EQ(t.entry()->Add(Opcode::kTanh, F32({4}), {p}, "add.3")->name(), "add.1");
  EXPECT_EQ(t.entry()->Add(Opcode::kTanh, F32({4}), {p}, "add")->name(), "add");
  EXPECT_EQ(t.entry()->Add(Opcode::kTanh, F32({4}), {p}, "add")->name(), "add.2");
  EXPECT_EQ(t.entry()->Add(Opcode::kTanh, F32({4}), {p}, "add")->name(), "add.4");  // .3 is taken
  EXPECT_EQ(t.entry()->Add(Opcode::kTanh, F32({4}), {p})->name(), "tanh");
  // Computations have names of their own.
  EXPECT_EQ(t.module().AddComputation("add")->name(), "add");
  EXPECT_EQ(t.module().AddComputation("add")->name(), "add.1");
}

TEST(InstructionTest, LikeCopiesAttributesOfTheSameOpcodeElseMetadata) {
  TestModule t;
  Instruction* p = t.Param(F32({4, 5}));
  Instruction* transpose = t.Add(Opcode::kTranspose, F32({5, 4}), {p});
  SetDimensions(transpose, {1, 0});
  transpose->mutable_attrs().mutable_metadata()->set_op_name("f/transpose");
  const Instruction* same = t.entry()->Add(Opcode::kTranspose, F32({5, 4}), {p}, "t", transpose);
  EXPECT_THAT(Dimensions(*same), ElementsAre(1, 0));
  EXPECT_EQ(same->op_name(), "f/transpose");
  const Instruction* other = t.entry()->Add(Opcode::kCopy, F32({4, 5}), {p}, "c", transpose);
  EXPECT_THAT(Dimensions(*other), IsEmpty());
  EXPECT_EQ(other->op_name(), "f/transpose");
}

TEST(InstructionTest, SourceLocations) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  EXPECT_EQ(p->SourceLocation(), "");
  EXPECT_EQ(p->Describe(), "p");
  pb::OpMetadata& metadata = *p->mutable_attrs().mutable_metadata();
  metadata.set_op_name("jit(f)/add");
  EXPECT_EQ(p->Describe(), "p (jit(f)/add)");
  // Through the stack frame index, whose ids are 1-based.
  pb::StackFrameIndexProto& index = *t.module().mutable_fields().mutable_stack_frame_index();
  index.add_file_names("f.py");
  auto* location = index.add_file_locations();
  location->set_file_name_id(1);
  location->set_line(12);
  index.add_stack_frames()->set_file_location_id(1);
  metadata.set_stack_frame_id(1);
  EXPECT_EQ(p->Describe(), "p (jit(f)/add, f.py:12)");
  metadata.set_stack_frame_id(2);  // there is no second frame
  EXPECT_EQ(p->SourceLocation(), "");
  index.mutable_stack_frames(0)->set_file_location_id(-7);
  metadata.set_stack_frame_id(1);
  EXPECT_EQ(p->SourceLocation(), "");
  // The instruction's own file wins.
  metadata.set_source_file("g.py");
  metadata.set_source_line(3);
  EXPECT_EQ(p->SourceLocation(), "g.py:3");
}

TEST(InstructionTest, SideEffectsReachThroughCalls) {
  TestModule t;
  Computation* body = t.module().AddComputation("body");
  Instruction* inner = TestModule::Param(body, F32({4}));
  Instruction* custom = TestModule::Add(body, Opcode::kCustomCall, F32({4}), {inner});
  Instruction* call = t.Add(Opcode::kCall, F32({4}), {t.Param(F32({4}))});
  call->set_called({body});
  EXPECT_FALSE(call->HasSideEffect());
  custom->mutable_attrs().set_custom_call_has_side_effect(true);
  EXPECT_TRUE(call->HasSideEffect());
}

TEST(ComputationTest, PostOrderPutsOperandsAndControlPredecessorsFirst) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* a = t.Add(Opcode::kTanh, F32({4}), {p});
  Instruction* b = t.Add(Opcode::kNegate, F32({4}), {p});
  EXPECT_THAT(t.entry()->PostOrder(), ElementsAre(p, a, b));  // free: creation order
  a->AddControlPredecessor(b);
  EXPECT_THAT(t.entry()->PostOrder(), ElementsAre(p, b, a));
  b->AddControlPredecessor(a);
  std::vector<Instruction*> order;
  EXPECT_FALSE(t.entry()->TopologicalOrder(&order));
}

TEST(ComputationTest, PostOrderOfADeepChainDoesNotRecurse) {
  TestModule t;
  Instruction* i = t.Param(F32({}));
  for (int n = 0; n < 300000; ++n) i = t.Add(Opcode::kNegate, F32({}), {i});
  // The first now depends on the last of another deep chain, created later.
  EXPECT_EQ(t.entry()->PostOrder().size(), 300001u);
  EXPECT_EQ(t.entry()->PostOrder().back(), i);
}

TEST(ComputationTest, RemoveDeadKeepsParametersEffectsAndControlPredecessors) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  t.Param(F32({4}));  // unused
  Instruction* dead = t.Add(Opcode::kTanh, F32({4}), {p});
  t.Add(Opcode::kNegate, F32({4}), {dead});  // dead too
  Instruction* effect = t.Add(Opcode::kCustomCall, F32({4}), {p});
  effect->mutable_attrs().set_custom_call_has_side_effect(true);
  Instruction* before = t.Add(Opcode::kCopy, F32({4}), {p});
  Instruction* root = t.Add(Opcode::kAbs, F32({4}), {p});
  root->AddControlPredecessor(before);
  EXPECT_EQ(t.entry()->RemoveDead(), 2);
  EXPECT_EQ(t.entry()->size(), 5u);
  EXPECT_THAT(p->users(), ElementsAre(effect, before, root));
  EXPECT_EQ(t.entry()->RemoveDead(), 0);
}

TEST(ComputationDeathTest, RemoveRefusesWhatIsInUse) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* root = t.Add(Opcode::kTanh, F32({4}), {p});
  EXPECT_DEATH(t.entry()->Remove(p), "still has users");
  EXPECT_DEATH(t.entry()->Remove(root), "is the root");
}

TEST(ComputationTest, ParametersAreSortedByNumber) {
  TestModule t;
  Instruction* second = t.entry()->AddParameter(1, F32({2}), "b");
  Instruction* first = t.entry()->AddParameter(0, F32({1}), "a");
  EXPECT_THAT(t.entry()->parameters(), ElementsAre(first, second));
}

TEST(ModuleTest, CloneIsDeepAndKeepsNamesIdsAndSchedules) {
  TestModule t;
  Computation* reducer = t.Reducer(Opcode::kAdd);
  Instruction* p = t.Param(F32({4}));
  Instruction* zero = AddConstant(t.entry(), PrimitiveType::kF32, 0);
  Instruction* sum = t.Add(Opcode::kReduce, F32({}), {p, zero});
  SetDimensions(sum, {0});
  sum->set_called({reducer});
  t.entry()->set_schedule({p, zero, sum});
  const std::unique_ptr<Module> clone = t.module().Clone();
  EXPECT_EQ(ToString(*clone), ToString(t.module()));
  const Instruction* copy = clone->entry()->root();
  EXPECT_NE(copy, sum);
  EXPECT_EQ(copy->id(), sum->id());
  EXPECT_NE(copy->called()[0], reducer);
  EXPECT_EQ(copy->called()[0]->parent(), clone.get());
  EXPECT_EQ(clone->entry()->schedule().size(), 3u);
  EXPECT_EQ(clone->computations()[0]->name(), "main");  // creation order
  t.module().entry()->root()->mutable_attrs().clear_dimensions();
  EXPECT_THAT(Dimensions(*copy), ElementsAre(0));
  // Names that were taken in the original are taken in the clone.
  EXPECT_NE(clone->UniqueName("p"), "p");
}

TEST(ModuleTest, CloneComputationCopiesCallees) {
  TestModule t;
  Computation* reducer = t.Reducer(Opcode::kAdd);
  Instruction* p = t.Param(F32({4}));
  Instruction* sum =
      t.Add(Opcode::kReduce, F32({}), {p, AddConstant(t.entry(), PrimitiveType::kF32, 0)});
  SetDimensions(sum, {0});
  sum->set_called({reducer});
  const Computation* copy = t.module().CloneComputation(*t.entry(), "other");
  EXPECT_EQ(copy->name(), "other");
  EXPECT_NE(copy->root()->called()[0], reducer);
  EXPECT_NE(copy->root()->name(), sum->name());
  EXPECT_EQ(t.module().computations().size(), 4u);
  EXPECT_TRUE(Verify(t.module()).ok());
  t.module().RemoveUnreachable();
  EXPECT_EQ(t.module().computations().size(), 2u);
}

}  // namespace
}  // namespace tpusim::hlo
