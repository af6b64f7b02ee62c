// Users of change numbers: the verifier of changes, and answers that are kept.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// sum of tanh(-p), by way of a call, in the order of the schedule.
struct Called {
  Called() {
    reducer = t.Reducer(Opcode::kAdd);
    body = t.module().AddComputation("body");
    inner = TestModule::Param(body, F32({4}));
    tanh = TestModule::Add(body, Opcode::kTanh, F32({4}), {inner});
    p = t.Param(F32({4}));
    zero = AddConstant(t.entry(), PrimitiveType::kF32, 0);
    negate = t.Add(Opcode::kNegate, F32({4}), {p});
    call = t.Add(Opcode::kCall, F32({4}), {negate});
    call->set_called({body});
    sum = t.Add(Opcode::kReduce, F32({}), {call, zero});
    SetDimensions(sum, {0});
    sum->set_called({reducer});
    t.entry()->set_schedule({p, zero, negate, call, sum});
  }

  TestModule t;
  Computation *reducer, *body;
  Instruction *inner, *tanh, *p, *zero, *negate, *call, *sum;
};

struct Break {
  std::string name;
  std::function<void(Called&)> apply;
};

const std::vector<Break>& Breaks() {
  static const auto* const breaks = new std::vector<Break>{
      {"the shape of an operand", [](Called& c) { c.p->set_shape(F32({5})); }},
      {"its own shape", [](Called& c) { c.sum->set_shape(F32({5})); }},
      {"the shape of a callee's parameter", [](Called& c) { c.inner->set_shape(F32({5})); }},
      {"the result of a callee",
       [](Called& c) {
         c.body->set_root(AddConstant(c.body, PrimitiveType::kF32, 0));
       }},
      {"a parameter more in a callee",
       [](Called& c) { c.body->AddParameter(1, F32({4}), "more"); }},
      {"the number of a parameter",
       [](Called& c) { c.inner->mutable_attrs().set_parameter_number(1); }},
      {"another callee", [](Called& c) { c.call->set_called({c.reducer}); }},
      {"calls in a circle", [](Called& c) { c.call->set_called({c.t.entry()}); }},
      {"an operand", [](Called& c) { c.call->ReplaceOperand(0, c.zero); }},
      {"operands", [](Called& c) { Instruction::ReplaceOperands({{c.call, 0, c.zero}}); }},
      {"all uses", [](Called& c) { c.call->ReplaceAllUsesWith(c.zero); }},
      {"a cycle", [](Called& c) { c.negate->ReplaceOperand(0, c.call); }},
      {"a cycle of control edges", [](Called& c) { c.negate->AddControlPredecessor(c.call); }},
      {"attributes", [](Called& c) { SetDimensions(c.sum, {3}); }},
      {"attributes of another", [](Called& c) { c.sum->share_attrs(*c.p); }},
      {"an instruction that the schedule lacks",
       [](Called& c) { c.t.entry()->Add(Opcode::kTanh, F32({4}), {c.p}); }},
      {"the schedule", [](Called& c) { c.t.entry()->set_schedule({c.sum}); }},
      {"an order of control edges", [](Called& c) { c.zero->AddControlPredecessor(c.negate); }},
      {"no root", [](Called& c) { c.body->set_root(nullptr); }},
  };
  return *breaks;
}

TEST(VerifyChanges, FindsWhatTheWholeVerifierFinds) {
  for (const Break& one : Breaks()) {
    Called c;
    ASSERT_EQ(VerifyChanges(c.t.module()), absl::OkStatus());
    ASSERT_EQ(VerifyChanges(c.t.module()), absl::OkStatus());
    one.apply(c);
    const std::string whole = Message(Verify(c.t.module()));
    EXPECT_NE(whole, "") << one.name;
    EXPECT_EQ(Message(VerifyChanges(c.t.module())), whole) << one.name;
    // It is not taken for right afterwards.
    EXPECT_EQ(Message(VerifyChanges(c.t.module())), whole) << one.name;
  }
}

// The first time it looks at everything, then at what has changed: an attribute that is written
// behind its back, which nothing may do, is not seen.
TEST(VerifyChanges, LooksAtNothingElse) {
  Called c;
  pb::HloInstructionProto& attrs = c.sum->mutable_attrs();
  ASSERT_EQ(VerifyChanges(c.t.module()), absl::OkStatus());
  attrs.set_dimensions(0, 3);
  EXPECT_EQ(VerifyChanges(c.t.module()), absl::OkStatus());
  EXPECT_NE(Verify(c.t.module()), absl::OkStatus());
  c.zero->set_shape(c.zero->shape());
  EXPECT_NE(VerifyChanges(c.t.module()), absl::OkStatus());
}

TEST(Changes, AreCountedOverAllModules) {
  Called a;
  const int64_t before = LastChange();
  EXPECT_FALSE(a.sum->ChangedSince(before));
  Called b;
  EXPECT_TRUE(b.sum->ChangedSince(before));
  EXPECT_FALSE(a.sum->ChangedSince(before));
  a.sum->mutable_attrs();
  EXPECT_TRUE(a.sum->ChangedSince(before));
  EXPECT_TRUE(a.t.entry()->ChangedSince(before));
  EXPECT_FALSE(a.call->ChangedSince(before));
  EXPECT_FALSE(a.body->ChangedSince(before));
}

std::vector<std::string> Names(const std::vector<Instruction*>& instructions) {
  std::vector<std::string> names;
  for (const Instruction* i : instructions) names.push_back(i->name());
  return names;
}

// A copy has kept nothing yet.
TEST(KeptAnswers, AreThoseOfACopyAfterEveryChange) {
  for (const Break& one : Breaks()) {
    Called c;
    for (const Computation* computation : c.t.module().computations()) {
      computation->PostOrder(), computation->parameters(), computation->callees();
    }
    one.apply(c);
    std::vector<Instruction*> order;
    std::vector<Computation*> callees;
    if (!c.t.entry()->TopologicalOrder(&order) ||
        !CalleesFirst({c.t.entry()}, &callees)) {
      continue;
    }
    const auto copy = c.t.module().Clone();
    for (size_t n = 0; n < copy->computations().size(); ++n) {
      const Computation& kept = *c.t.module().computations()[n];
      const Computation& fresh = *copy->computations()[n];
      EXPECT_EQ(Names(kept.PostOrder()), Names(fresh.PostOrder())) << one.name;
      EXPECT_EQ(Names(kept.parameters()), Names(fresh.parameters())) << one.name;
      EXPECT_EQ(kept.callees().size(), fresh.callees().size()) << one.name;
    }
  }
}

TEST(KeptAnswers, OfWhatIsRemoved) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* late = t.entry()->Add(Opcode::kNegate, F32({4}), {p});
  Instruction* early = t.entry()->Add(Opcode::kTanh, F32({4}), {p});
  early->AddControlPredecessor(late);
  t.entry()->set_root(early);
  EXPECT_THAT(t.entry()->PostOrder(), ElementsAre(p, late, early));
  t.entry()->DropOrder();
  t.entry()->RemoveDead();
  EXPECT_THAT(t.entry()->PostOrder(), ElementsAre(p, early));
  EXPECT_THAT(p->users(), ElementsAre(early));
  early->set_called({t.Reducer(Opcode::kAdd)});
  EXPECT_EQ(t.entry()->callees().size(), 1u);
  early->set_called({});
  EXPECT_THAT(t.entry()->callees(), IsEmpty());
}

// A value that everything reads: as one by one, users in the same order.
TEST(ReplaceOperands, AsOneAfterTheOther) {
  std::vector<std::vector<std::string>> users;
  for (const bool at_once : {false, true}) {
    TestModule t;
    Instruction* p = t.Param(F32({4}));
    Instruction* q = t.Param(F32({4}));
    std::vector<Instruction::OperandChange> changes;
    for (int n = 0; n < 100; ++n) {
      Instruction* add = t.Add(Opcode::kAdd, F32({4}), {p, n % 3 == 0 ? q : p});
      if (n % 2 == 1) continue;
      changes.push_back({add, 0, q});
      if (n % 4 == 0) changes.push_back({add, 1, q});
    }
    if (at_once) {
      Instruction::ReplaceOperands(changes);
    } else {
      for (const auto& [user, operand, with] : changes) user->ReplaceOperand(operand, with);
    }
    EXPECT_EQ(Message(Verify(t.module())), "");
    users.push_back(Names(p->users()));
    users.push_back(Names(q->users()));
  }
  EXPECT_EQ(users[0], users[2]);
  EXPECT_EQ(users[1], users[3]);
  EXPECT_LT(users[0].size(), 100u);
}

// Layers that are copies of one share their attributes until one changes its own.
TEST(SharedAttributes, ChangeForOneAlone) {
  TestModule t;
  Instruction* p = t.Param(F32({4, 4}));
  for (int n = 0; n < 2; ++n) {
    Instruction* turned = t.Add(Opcode::kTranspose, F32({4, 4}), {p});
    SetDimensions(turned, {1, 0});
    turned->mutable_attrs().mutable_metadata()->set_op_name("layer");
  }
  const auto module = FromProto(ToProto(t.module())).value();
  const std::vector<Instruction*> turned = FindAll(*module, Opcode::kTranspose);
  ASSERT_EQ(turned.size(), 2u);
  EXPECT_EQ(&turned[0]->attrs(), &turned[1]->attrs());
  // What is made from them has their metadata.
  const Instruction* made[2];
  for (int n = 0; n < 2; ++n) {
    made[n] = module->entry()->Add(Opcode::kNegate, F32({4, 4}), {turned[n]}, "", turned[n]);
    EXPECT_EQ(made[n]->op_name(), "layer");
    EXPECT_FALSE(made[n]->attrs().dimensions_size() > 0);
  }
  EXPECT_EQ(&made[0]->attrs(), &made[1]->attrs());
  SetDimensions(turned[0], {0, 1});
  turned[0]->mutable_attrs().mutable_metadata()->set_op_name("other");
  EXPECT_THAT(Dimensions(*turned[1]), ElementsAre(1, 0));
  EXPECT_EQ(turned[1]->op_name(), "layer");
  EXPECT_EQ(made[0]->op_name(), "layer");
  const Instruction* later =
      module->entry()->Add(Opcode::kNegate, F32({4, 4}), {turned[0]}, "", turned[0]);
  EXPECT_EQ(later->op_name(), "other");
}

}  // namespace
}  // namespace tpusim::hlo
