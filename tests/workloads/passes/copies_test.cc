#include "workloads/passes/copies/copies.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/passes/pass_test.h"
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

// A Pallas kernel with input_output_aliases: its second result is its second operand.
TEST(Copies, AKernelThatWritesItsArgumentWorksOnACopyUnlessItIsDonated) {
  for (const bool donated : {false, true}) {
    SmallModule m;
    Instruction* x = m.Parameter({256, 512});
    Instruction* cache = m.Parameter({8, 256, 512});
    const hlo::Shape results = hlo::MakeTupleShape({x->shape(), cache->shape()});
    Instruction* kernel = m.entry().Add(Opcode::kCustomCall, results, {x, cache}, "kernel");
    auto* alias = kernel->mutable_attrs().add_output_operand_aliasing();
    alias->add_output_shape_index(1);
    alias->set_operand_index(1);
    m.entry().set_root(kernel);
    if (donated) {
      m.module().mutable_fields().mutable_buffer_donor()->add_entries()->set_parameter_number(1);
    }
    ASSERT_TRUE(InsertCopies(m.module(), m.target()).ok());
    EXPECT_EQ(m.Find(Opcode::kCopy).size(), donated ? 0u : 1u);
    EXPECT_EQ(kernel->operand(0), x);
    EXPECT_EQ(kernel->operand(1) == cache, donated);
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

// `lines` between a stack, a row and their place, and a root.
std::string Updating(const std::string& lines) {
  return R"(HloModule m, buffer_donor={ (0, {}) }
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[8,512] parameter(0)
  row = f32[1,512] parameter(1)
  at = s32[] parameter(2)
  zero = f32[] constant(0)
  stack = f32[8,512] tanh(x)
)" + lines +
         "\n}\n";
}

void ExpectCopies(const std::string& before, const std::string& after) {
  PassText test(Updating(before));
  EXPECT_EQ(test.Run("copies").value(), before != after);
  EXPECT_EQ(test.text(), Canonical(Updating(after)));
}

// The sum can come first: it must, and nothing is copied.
TEST(Copies, AReaderThatCanComeFirstDoes) {
  ExpectCopies(R"(
  sum = f32[8] reduce(stack, zero), dimensions={1}, to_apply=add
  new = f32[8,512] dynamic-update-slice(stack, row, at, at)
  ROOT r = (f32[8], f32[8,512]) tuple(sum, new))",
               R"(
  sum = f32[8] reduce(stack, zero), dimensions={1}, to_apply=add
  new = f32[8,512] dynamic-update-slice(stack, row, at, at), control-predecessors={sum}
  ROOT r = (f32[8], f32[8,512]) tuple(sum, new))");
}

// Here the old stack meets the new one.
TEST(Copies, AReaderBehindTheUpdateNeedsTheOldValue) {
  ExpectCopies(R"(
  new = f32[8,512] dynamic-update-slice(stack, row, at, at)
  ROOT r = f32[8,512] subtract(new, stack))",
               R"(
  old = f32[8,512] copy(stack)
  new = f32[8,512] dynamic-update-slice(old, row, at, at)
  ROOT r = f32[8,512] subtract(new, stack))");
}

// Names of the stack are the stack, in tuples and behind barriers too.
TEST(Copies, ReadersOfNamesCount) {
  ExpectCopies(R"(
  new = f32[8,512] dynamic-update-slice(stack, row, at, at)
  both = (f32[8,512], f32[8,512]) tuple(new, stack)
  held = (f32[8,512], f32[8,512]) opt-barrier(both)
  old = f32[8,512] get-tuple-element(held), index=1
  flat = f32[4096] bitcast(old)
  ROOT r = f32[4096] exponential(flat))",
               R"(
  copied = f32[8,512] copy(stack)
  new = f32[8,512] dynamic-update-slice(copied, row, at, at)
  both = (f32[8,512], f32[8,512]) tuple(new, stack)
  held = (f32[8,512], f32[8,512]) opt-barrier(both)
  old = f32[8,512] get-tuple-element(held), index=1
  flat = f32[4096] bitcast(old)
  ROOT r = f32[4096] exponential(flat))");
}

// Each reads what the other changes: the first copies, the second comes behind it.
TEST(Copies, OfTwoUpdatesOneCopies) {
  ExpectCopies(R"(
  first = f32[8,512] dynamic-update-slice(stack, row, at, at)
  second = f32[8,512] dynamic-update-slice(stack, row, at, at)
  ROOT r = f32[8,512] subtract(first, second))",
               R"(
  copied = f32[8,512] copy(stack)
  first = f32[8,512] dynamic-update-slice(copied, row, at, at)
  second = f32[8,512] dynamic-update-slice(stack, row, at, at), control-predecessors={first}
  ROOT r = f32[8,512] subtract(first, second))");
}

TEST(Copies, WhatIsReturnedStays) {
  ExpectCopies(R"(
  new = f32[8,512] dynamic-update-slice(stack, row, at, at)
  ROOT r = (f32[8,512], f32[8,512]) tuple(new, stack))",
               R"(
  copied = f32[8,512] copy(stack)
  new = f32[8,512] dynamic-update-slice(copied, row, at, at)
  ROOT r = (f32[8,512], f32[8,512]) tuple(new, stack))");
}

// One splat for two carried values that the body replaces: each has its own.
TEST(Copies, OneSplatForTwoCarriesIsMadeTwice) {
  const auto text = [](const std::string& more, const std::string& second) {
    return R"(HloModule m
body {
  c = (s32[], f32[8,512], f32[8,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  a = f32[8,512] get-tuple-element(c), index=1
  b = f32[8,512] get-tuple-element(c), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  d = f32[8,512] cosine(a)
  f = f32[8,512] tanh(b)
  ROOT t = (s32[], f32[8,512], f32[8,512]) tuple(j, d, f)
}
condition {
  c = (s32[], f32[8,512], f32[8,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY e {
  start = s32[] constant(0)
  zero = f32[] constant(0)
  zeros = f32[8,512] broadcast(zero), dimensions={}
)" + more + R"(
  init = (s32[], f32[8,512], f32[8,512]) tuple(start, zeros, )" +
           second + R"()
  ROOT r = (s32[], f32[8,512], f32[8,512]) while(init), condition=condition, body=body
})";
  };
  PassText test(text("", "zeros"));
  EXPECT_TRUE(test.Run("copies").value());
  EXPECT_EQ(test.text(),
            Canonical(text("more = f32[8,512] broadcast(zero), dimensions={}", "more")));
}

// The loop can run when everybody else has read what it starts from.
TEST(Copies, ALoopTakesTheBufferOfItsLastReader) {
  const auto text = [](const std::string& order) {
    return R"(HloModule m
body {
  c = (s32[], f32[8,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  a = f32[8,512] get-tuple-element(c), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  d = f32[8,512] cosine(a)
  ROOT t = (s32[], f32[8,512]) tuple(j, d)
}
condition {
  c = (s32[], f32[8,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = f32[8,512] parameter(0)
  x = f32[8,512] tanh(p)
  y = f32[8,512] negate(x)
  start = s32[] constant(0)
  init = (s32[], f32[8,512]) tuple(start, x)
  w = (s32[], f32[8,512]) while(init), condition=condition, body=body)" +
           order + R"(
  v = f32[8,512] get-tuple-element(w), index=1
  ROOT r = f32[8,512] add(v, y)
})";
  };
  PassText test(text(""));
  EXPECT_TRUE(test.Run("copies").value());
  EXPECT_EQ(test.text(), Canonical(text(", control-predecessors={y}")));
}

// What a branch overwrites must be of no use behind the conditional.
TEST(Copies, ABranchOverwritesWhatOnlyItIsGiven) {
  const auto text = [](bool used) {
    return R"(HloModule m
stores {
  q = (f32[8,512], f32[1,512]) parameter(0)
  s = f32[8,512] get-tuple-element(q), index=0
  row = f32[1,512] get-tuple-element(q), index=1
  at = s32[] constant(3)
  ROOT n = f32[8,512] dynamic-update-slice(s, row, at, at)
}
keeps {
  q = (f32[8,512], f32[1,512]) parameter(0)
  ROOT s = f32[8,512] get-tuple-element(q), index=0
}
ENTRY e {
  p = pred[] parameter(0)
  x = f32[8,512] parameter(1)
  row = f32[1,512] parameter(2)
  stack = f32[8,512] tanh(x)
  given = (f32[8,512], f32[1,512]) tuple(stack, row)
  c = f32[8,512] conditional(p, given, given), true_computation=stores, false_computation=keeps
  ROOT r = f32[8,512] add(c, )" +
           std::string(used ? "stack" : "x") + R"()
})";
  };
  PassText alone(text(false));
  EXPECT_FALSE(alone.Run("copies").value());
  PassText used(text(true));
  EXPECT_TRUE(used.Run("copies").value());
  EXPECT_TRUE(HasLines(used.text(), "*copy(*\n*dynamic-update-slice(*"));
}

}  // namespace
}  // namespace tpusim::passes
