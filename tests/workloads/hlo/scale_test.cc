// Large and deep modules: time in proportion to size, no stack per depth.
#include <ctime>

#include "big_module.h"
#include "hlo_test_util.h"
#include "workloads/hlo/ir/shape_proto.h"
#include "workloads/hlo/rules/cost.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

bool Always(const Instruction&) { return true; }

// Import, and everything that the front end does with what it imported.
void Everything(const Module& module) {
  const std::string bytes = SerializeDeterministic(ToProto(module));
  const auto imported = Import(bytes, "big.pb");
  ASSERT_TRUE(imported.ok()) << Message(imported.status());
  Module& m = *imported->module;
  EXPECT_GT(ToString(m).size(), 20 * m.entry()->size());
  EXPECT_TRUE(CostOf(*m.entry()).ok());
  EXPECT_EQ(m.entry()->RemoveDead(), 0);
  const int64_t size = m.InlinedSize(Always);
  m.InlineCalls(Always);
  EXPECT_LE(static_cast<int64_t>(m.entry()->size()), size);
  EXPECT_EQ(Message(Verify(m)), "");
}

double CpuSeconds(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(ScaleTest, DeepChain) { Everything(*ChainOfAdds(100000)); }

// One after the other, each of them would look for itself among all the others.
TEST(ScaleTest, AValueThatEverythingReads) {
  TestModule t;
  Instruction* p = t.Param(F32({8}));
  Instruction* q = t.Param(F32({8}));
  std::vector<Instruction::OperandChange> changes;
  for (int n = 0; n < 200000; ++n) {
    changes.push_back({t.Add(Opcode::kTanh, F32({8}), {p}), 0, q});
  }
  EXPECT_LT(CpuSeconds([&] { Instruction::ReplaceOperands(changes); }), 2);
  EXPECT_TRUE(p->users().empty());
  EXPECT_EQ(q->users().size(), 200000u);
}

TEST(ScaleTest, DeepCalls) {
  const auto module = NestedCalls(10000);
  Everything(*module);
  EXPECT_EQ(module->InlinedSize(Always), 2 + 3 * 10000);
  EXPECT_EQ(module->InlineCalls(Always), 10000);
  // Only the parameter of main is left of 10,001.
  EXPECT_EQ(module->entry()->size(), 10001u + 1);
  module->RemoveUnreachable();
  EXPECT_EQ(module->computations().size(), 1u);
  EXPECT_EQ(module->entry()->PostOrder()[1]->op_name(), "");
  EXPECT_EQ(module->entry()->PostOrder()[3]->op_name(), "f0/f1");
}

// Calls that call twice each: the size is known before any memory is taken, and
// costs are found without going through every path.
TEST(ScaleTest, DoublingCalls) {
  Module module("doubling");
  Computation* callee = nullptr;
  for (int n = 0; n <= 80; ++n) {
    Computation* c = module.AddComputation("f");
    Instruction* value = TestModule::Param(c, F32({8}));
    if (callee == nullptr) value = TestModule::Add(c, Opcode::kTanh, F32({8}), {value});
    for (int twice = 0; twice < 2 && callee != nullptr; ++twice) {
      value = TestModule::Add(c, Opcode::kCall, F32({8}), {value});
      value->set_called({callee});
    }
    callee = c;
    if (n == 40) {
      // 2^40 calls of tanh over 8 elements.
      EXPECT_EQ(CostOf(*c)->transcendentals.value(), int64_t{8} << 40);
    }
  }
  module.set_entry(callee);
  EXPECT_EQ(Message(Verify(module)), "");
  EXPECT_EQ(module.InlinedSize(Always), int64_t{1} << 62);  // 2^80, and says "too many"
}

TEST(ScaleTest, TimeGrowsWithSize) {
  const auto seconds = [](int64_t size) {
    const auto module = Layers(size);
    return CpuSeconds([&] { Everything(*module); });
  };
  seconds(1000);  // whatever happens once
  const double small = seconds(10000), large = seconds(100000);
  // Ten times as much to do; quadratic would be a hundred times as much.
  EXPECT_LT(large, 30 * small);
}

// Many users of one value, replaced and removed one by one.
TEST(ScaleTest, ManyUsersOfOneValue) {
  TestModule t;
  Instruction* p = t.Param(F32({8}));
  Instruction* q = t.Param(F32({8}));
  std::vector<Instruction*> users;
  for (int n = 0; n < 100000; ++n) {
    users.push_back(t.entry()->Add(Opcode::kNegate, F32({8}), {p}));
  }
  p->ReplaceAllUsesWith(q);
  EXPECT_EQ(p->users().size(), 0u);
  EXPECT_EQ(q->users(), users);
  t.entry()->set_root(q);
  for (auto it = users.rbegin(); it != users.rend(); ++it) t.entry()->Remove(*it);
  EXPECT_EQ(t.entry()->size(), 2u);
  EXPECT_EQ(t.entry()->instructions().size(), 2u);
}

pb::HloModuleProto NestedTuple(int depth) {
  TestModule t;
  t.Param(F32({8}));
  pb::HloModuleProto proto = ToProto(t.module());
  pb::ShapeProto* shape = proto.mutable_computations(0)->mutable_instructions(0)->mutable_shape();
  shape->Clear();
  for (int n = 0; n < depth; ++n) {
    shape->set_element_type(pb::TUPLE);
    shape = shape->add_tuple_shapes();
  }
  shape->set_element_type(pb::F32);
  return proto;
}

TEST(ScaleTest, TupleNestingIsLimited) {
  const auto error = [](int depth) {
    return Message(Import(NestedTuple(depth).SerializeAsString(), "t.pb").status());
  };
  EXPECT_EQ(error(32), "");
  EXPECT_THAT(error(65), HasSubstr("tuples nested more than 64 deep"));
  // Deeper than the parser goes.
  EXPECT_THAT(error(99), HasSubstr("nested too deeply"));
  EXPECT_THAT(error(1000), HasSubstr("nested too deeply"));
  EXPECT_THAT(Message(FromProto(NestedTuple(5000)).status()),
              HasSubstr("tuples nested more than 64 deep"));
}

}  // namespace
}  // namespace tpusim::hlo
