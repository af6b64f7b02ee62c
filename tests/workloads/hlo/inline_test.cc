#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;

// main: f(f(p)), f: tanh(x) + x
class InlineTest : public ::testing::Test {
 protected:
  InlineTest() {
    callee_ = t_.module().AddComputation("f");
    Instruction* x = TestModule::Param(callee_, F32({4}));
    Instruction* tanh = callee_->Add(Opcode::kTanh, F32({4}), {x}, "tanh.7");
    tanh->mutable_attrs().mutable_metadata()->set_op_name("tanh");
    TestModule::Add(callee_, Opcode::kAdd, F32({4}), {tanh, x});
    first_ = Call(t_.Param(F32({4})), "jit(g)/f");
    second_ = Call(first_, "jit(g)/again");
  }
  Instruction* Call(Instruction* operand, const std::string& op_name) {
    Instruction* call = t_.Add(Opcode::kCall, F32({4}), {operand});
    call->set_called({callee_});
    call->mutable_attrs().mutable_metadata()->set_op_name(op_name);
    return call;
  }
  TestModule t_;
  Computation* callee_;
  Instruction *first_, *second_;
};

TEST_F(InlineTest, OneCall) {
  const Instruction* result = t_.module().InlineCall(first_);
  EXPECT_EQ(result->opcode(), Opcode::kAdd);
  EXPECT_EQ(second_->operand(0), result);
  EXPECT_EQ(result->operand(0)->op_name(), "jit(g)/f/tanh");
  EXPECT_EQ(result->op_name(), "jit(g)/f");  // had none of its own
  EXPECT_TRUE(Verify(t_.module()).ok());
}

TEST_F(InlineTest, AllCallsKeepNamesAndEmptyTheCallee) {
  EXPECT_EQ(t_.module().InlineCalls([](const Instruction&) { return true; }), 2);
  EXPECT_EQ(t_.module().computations().size(), 1u);
  std::vector<std::string> names;
  for (const Instruction* i : FindAll(t_.module(), Opcode::kTanh)) names.push_back(i->name());
  EXPECT_THAT(names, ElementsAre("tanh.1", "tanh.7"));
  EXPECT_TRUE(Verify(t_.module()).ok());
}

TEST_F(InlineTest, PredicateChooses) {
  const auto wanted = [&](const Instruction& call) { return call.op_name() == "jit(g)/f"; };
  EXPECT_EQ(t_.module().InlineCalls(wanted), 1);
  EXPECT_EQ(FindAll(t_.module(), Opcode::kCall).size(), 1u);
  EXPECT_TRUE(Verify(t_.module()).ok());
}

TEST_F(InlineTest, IdentityCallee) {
  TestModule t;
  Computation* identity = t.module().AddComputation("identity");
  TestModule::Param(identity, F32({4}));
  Instruction* p = t.Param(F32({4}));
  Instruction* call = t.Add(Opcode::kCall, F32({4}), {p});
  call->set_called({identity});
  EXPECT_EQ(t.module().InlineCall(call), p);
  EXPECT_EQ(t.entry()->root(), p);
}

TEST_F(InlineTest, ControlEdgesOfTheCallMoveToTheBody) {
  Instruction* before = t_.Add(Opcode::kNegate, F32({4}), {first_->operand(0)});
  Instruction* after = t_.Add(Opcode::kAbs, F32({4}), {first_->operand(0)});
  first_->AddControlPredecessor(before);
  after->AddControlPredecessor(first_);
  const Instruction* result = t_.module().InlineCall(first_);
  EXPECT_THAT(result->operand(0)->control_predecessors(), ElementsAre(before));
  EXPECT_THAT(after->control_predecessors(), ElementsAre(result->operand(0), result));
}

// Two calls of a function with a loop: every loop gets a body of its own, and
// its op_names continue those of its call.
TEST(InlineLoopTest, BodiesAreNotShared) {
  const std::unique_ptr<Module> module = Load(DataFile("nested_loops.pb"));
  const size_t loops = FindAll(*module, Opcode::kWhile).size();
  module->InlineCalls([](const Instruction&) { return true; });
  EXPECT_EQ(FindAll(*module, Opcode::kCall).size(), 0u);
  std::vector<const Computation*> bodies;
  for (const Instruction* loop : FindAll(*module, Opcode::kWhile)) {
    EXPECT_EQ(loop->op_name().substr(0, 4), "jit(") << loop->op_name();
    bodies.push_back(loop->called()[0]);
  }
  EXPECT_EQ(bodies.size(), loops);
  std::sort(bodies.begin(), bodies.end());
  EXPECT_EQ(std::unique(bodies.begin(), bodies.end()), bodies.end());
  EXPECT_TRUE(Verify(*module).ok());
}

}  // namespace
}  // namespace tpusim::hlo
