#include "fmt/format.h"
#include "hlo_test_util.h"

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

TEST(VerifyTest, ArityNamesTheInstructionAndItsSource) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  Instruction* add = t.Add(Opcode::kAdd, F32({4}), {p, p, p});
  pb::OpMetadata& metadata = *add->mutable_attrs().mutable_metadata();
  metadata.set_op_name("jit(f)/add");
  metadata.set_source_file("f.py");
  metadata.set_source_line(9);
  EXPECT_EQ(Error(t), "add (jit(f)/add, f.py:9), add: 3 operands, not 2");
}

TEST(VerifyTest, PlacementsHandOneOperandOn) {
  for (const bool operand : {false, true}) {
    TestModule t;
    std::vector<Instruction*> operands;
    if (operand) operands.push_back(t.Param(F32({8})));
    Instruction* call = t.Add(Opcode::kCustomCall, F32({4}), operands);
    call->mutable_attrs().set_custom_call_target("annotate_device_placement");
    t.entry()->set_root(call);
    EXPECT_THAT(Error(t), HasSubstr(operand ? "makes f32[4] of f32[8]" : "0 operands for a call"));
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

TEST(VerifyTest, Callees) {
  TestModule t;
  Computation* reducer = t.Reducer(Opcode::kAdd);
  Instruction* p = t.Param(F32({4}));
  Instruction* reduce =
      t.Add(Opcode::kReduce, F32({}), {p, AddConstant(t.entry(), PrimitiveType::kF32, 0)});
  SetDimensions(reduce, {0});
  EXPECT_EQ(Error(t), "reduce, reduce: 0 called computations, not 1");
  reduce->set_called({reducer});
  EXPECT_EQ(Error(t), "");
  TestModule::Param(reducer, F32({}));
  EXPECT_EQ(Error(t), "reduce, reduce: reducer has 3 parameters, not 2");
}

// while (p < 3) p = body(p)
class WhileTest : public ::testing::Test {
 protected:
  WhileTest() {
    body_ = t_.module().AddComputation("body");
    TestModule::Add(body_, Opcode::kNegate, S32({}), {TestModule::Param(body_, S32({}))});
    condition_ = t_.module().AddComputation("condition");
    Instruction* p = TestModule::Param(condition_, S32({}));
    TestModule::Add(condition_, Opcode::kCompare, Pred(), {p, p})
        ->mutable_attrs()
        .set_comparison_direction("LT");
    loop_ = t_.Add(Opcode::kWhile, S32({}), {t_.Param(S32({}))});
    loop_->set_called({body_, condition_});
  }
  TestModule t_;
  Computation *body_, *condition_;
  Instruction* loop_;
};

TEST_F(WhileTest, BodyAndConditionInThatOrder) {
  EXPECT_EQ(Error(t_), "");
  loop_->set_called({condition_, body_});
  EXPECT_EQ(Error(t_), "while, while: condition returns pred[], not s32[]");
}

TEST_F(WhileTest, CarriedShape) {
  t_.entry()->parameters()[0]->set_shape(S32({2}));
  EXPECT_EQ(Error(t_), "while, while: parameter 0 of body is s32[], but gets s32[2]");
}

TEST(VerifyTest, Conditional) {
  TestModule t;
  Computation* branch = t.module().AddComputation("branch");
  TestModule::Param(branch, F32({4}));
  Instruction* index = t.Param(S32({}));
  Instruction* p = t.Param(F32({4}));
  Instruction* choice = t.Add(Opcode::kConditional, F32({4}), {index, p, p, p});
  choice->set_called({branch, branch, branch});
  EXPECT_EQ(Error(t), "");
  index->set_shape(Pred());
  EXPECT_EQ(Error(t), "conditional, conditional: a predicate selects two branches");
  index->set_shape(F32({}));
  EXPECT_EQ(Error(t), "conditional, conditional: selector f32[] is no pred[] or s32[]");
}

TEST(VerifyTest, ResultsThatAreOperands) {
  TestModule t;
  Instruction* p = t.Param(F32({4}));
  const Shape results = MakeTupleShape({F32({8}), F32({4})});
  Instruction* call = t.Add(Opcode::kCustomCall, results, {p});
  auto* alias = call->mutable_attrs().add_output_operand_aliasing();
  alias->add_output_shape_index(1);
  EXPECT_EQ(Error(t), "");
  for (const int64_t element : {0, 2, -1}) {
    alias->set_output_shape_index(0, element);
    EXPECT_EQ(Error(t),
              "custom-call, custom-call: output_to_operand_aliasing: operand 0 and what is to take "
              "its buffer differ");
  }
  for (const int64_t operand : {1, -1}) {
    alias->set_operand_index(operand);
    EXPECT_EQ(Error(t),
              "custom-call, custom-call: output_to_operand_aliasing: there is no operand " +
                  std::to_string(operand));
  }
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
