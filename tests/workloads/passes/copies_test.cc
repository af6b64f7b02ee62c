#include "workloads/passes/memory/copies.h"

#include <gtest/gtest.h>

#include "tests/workloads/passes/small_module.h"

namespace tpusim::passes {
namespace {

TEST(Copies, AnArgumentReturnedAsItIsNeedsACopyUnlessDonated) {
  for (const bool donated : {false, true}) {
    SmallModule m;
    Instruction* x = m.Parameter({256, 512});
    m.Return({x});
    if (donated) {
      m.module().mutable_fields().mutable_input_output_alias()->add_entries()->set_parameter_number(
          0);
    }
    ASSERT_TRUE(InsertCopies(m.module(), m.target()).ok());
    EXPECT_EQ(m.Find(Opcode::kCopy).size(), donated ? 0u : 1u);
  }
}

TEST(Copies, AnUpdateOfAnArgumentWorksOnACopyUnlessItIsDonated) {
  for (const bool donated : {false, true}) {
    SmallModule m;
    Instruction* cache = m.Parameter({8, 256, 512});
    Instruction* row = m.Parameter({1, 256, 512});
    Instruction* at = m.Parameter({}, PrimitiveType::kS32);
    Instruction* updated = m.entry().Add(Opcode::kDynamicUpdateSlice, cache->shape(),
                                         {cache, row, at, at, at}, "updated");
    m.Return({updated});
    if (donated) {
      m.module().mutable_fields().mutable_buffer_donor()->add_entries()->set_parameter_number(0);
    }
    ASSERT_TRUE(InsertCopies(m.module(), m.target()).ok());
    EXPECT_EQ(m.Find(Opcode::kCopy).size(), donated ? 0u : 1u);
    EXPECT_EQ(updated->operand(0) == cache, donated);
  }
}

TEST(Copies, LoopThatReplacesAnArgumentWorksOnACopy) {
  SmallModule m;
  Instruction* kept = m.Parameter({256, 512});
  Instruction* replaced = m.Parameter({256, 512});
  const hlo::Shape carry = hlo::MakeTupleShape({kept->shape(), replaced->shape()});
  hlo::Computation* body = m.module().AddComputation("body");
  Instruction* p = body->AddParameter(0, carry, "p");
  Instruction* a = body->Add(Opcode::kGetTupleElement, kept->shape(), {p}, "a");
  Instruction* b = body->Add(Opcode::kGetTupleElement, replaced->shape(), {p}, "b");
  b->mutable_attrs().set_tuple_index(1);
  Instruction* next = body->Add(Opcode::kAdd, b->shape(), {a, b}, "next");
  body->set_root(body->Add(Opcode::kTuple, carry, {a, next}, "carry"));
  hlo::Computation* condition = m.module().AddComputation("condition");
  condition->AddParameter(0, carry, "p");
  condition->set_root(condition->Add(Opcode::kConstant, MakeShape(PrimitiveType::kPred, {}), {}));
  Instruction* init = m.entry().Add(Opcode::kTuple, carry, {kept, replaced}, "init");
  Instruction* loop = m.entry().Add(Opcode::kWhile, carry, {init}, "loop");
  loop->set_called({body, condition});
  m.entry().set_root(loop);
  ASSERT_TRUE(InsertCopies(m.module(), m.target()).ok());
  EXPECT_EQ(init->operand(0), kept);
  EXPECT_EQ(init->operand(1)->opcode(), Opcode::kCopy);
}

}  // namespace
}  // namespace tpusim::passes
