#include "fmt/format.h"
#include "tests/workloads/hlo/text_cases.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

std::string Error(TestModule& t) { return Message(Verify(t.module())); }

TEST(VerifyTest, CommittedExportsAreValid) {
  for (const std::string& file : CommittedExports()) {
    const auto module = Load(file);
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(Message(Verify(*module)), "") << file;
  }
}

TEST(VerifyTest, Refused) { ExpectErrors("hlo/data/refused.hlo"); }

TEST(VerifyTest, Structure) {
  {
    Module empty("empty");
    EXPECT_EQ(Message(Verify(empty)), "module empty has no entry computation");
  }
  {
    TestModule t;
    t.entry()->AddParameter(0, F32({4}), "p");
    EXPECT_EQ(Error(t), "computation main has no root");
  }
  {
    TestModule t;
    Instruction* p = t.Param(F32({4}));
    Instruction* a = t.Add(Opcode::kNegate, F32({4}), {p});
    Instruction* b = t.Add(Opcode::kNegate, F32({4}), {a});
    a->ReplaceOperand(0, b);
    EXPECT_EQ(Error(t), "instructions of main form a cycle");
  }
  {
    TestModule t;
    t.entry()->AddParameter(1, F32({4}), "p");
    t.entry()->set_root(t.entry()->parameters()[0]);
    EXPECT_EQ(Error(t), "computation main: parameter 0 has number 1");
  }
  {
    TestModule t;
    Instruction* call = t.Add(Opcode::kCall, F32({4}), {t.Param(F32({4}))});
    call->set_called({t.entry()});
    EXPECT_EQ(Error(t), "computations of module test call each other");
    TestModule other;
    call->set_called({other.entry()});
    EXPECT_EQ(Error(t), "call calls a computation of another module");
  }
}

TEST(VerifyTest, PairsNamePartitionsOnce) {
  TestModule t;
  Instruction* permute = t.Add(Opcode::kCollectivePermute, F32({4}), {t.Param(F32({4}))});
  t.entry()->set_root(permute);
  const auto error = [&](const std::vector<SourceTargetPair>& pairs) {
    SetSourceTargetPairs(permute, pairs);
    return Message(VerifyCollectives(t.module(), 4));
  };
  EXPECT_EQ(error({{0, 1}, {1, 0}, {2, 2}}), "");
  for (const int64_t beyond : {int64_t{4}, int64_t{-1}, int64_t{1} << 62}) {
    EXPECT_EQ(error({{0, beyond}}),
              fmt::format("source-target pairs of collective-permute: the pair {{0,{0}}} names "
                          "partition {0}, but the program has 4 (0 to 3)",
                          beyond));
  }
  EXPECT_THAT(error({{0, 1}, {0, 2}}), HasSubstr("partition 0 is the source of more than one"));
  EXPECT_THAT(error({{0, 1}, {2, 1}}), HasSubstr("partition 1 is the target of more than one"));
}

TEST(VerifyTest, Schedules) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* a = t.Add(Opcode::kNegate, F32({4}), {p});
  t.entry()->set_schedule({a, p});
  EXPECT_EQ(Error(t), "schedule of main: negate comes before p, which it needs");
  t.entry()->set_schedule({p, p, a});
  EXPECT_EQ(Error(t), "schedule of main: p is foreign or comes twice");
  t.entry()->set_schedule({p});
  EXPECT_EQ(Error(t), "schedule of main has 1 of 2 instructions");
  t.entry()->set_schedule({p, a});
  EXPECT_EQ(Error(t), "");
}

}  // namespace
}  // namespace tpusim::hlo
