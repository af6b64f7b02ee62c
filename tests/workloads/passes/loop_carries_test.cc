// Carried values of loops that never change or that nobody reads, and instructions of a loop's
// body that compute the same in every iteration.
#include "workloads/hlo/transforms/loop_carries.h"

#include <gtest/gtest.h>

#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/passes/loops/hoist_invariants.h"

namespace tpusim::passes {
namespace {

// for (i = 0; i < limit; ++i) { x = x @ tanh(w); unread = unread + 1; } with (i, x, w, unread,
// limit) carried.
struct Loop {
  SmallModule m;
  hlo::Computation *body = nullptr, *condition = nullptr;
  Instruction *loop = nullptr, *w = nullptr, *result = nullptr;

  Loop() {
    const hlo::Shape whole = MakeShape(PrimitiveType::kS32, {});
    const hlo::Shape x_shape = MakeShape(PrimitiveType::kF32, {8, 128});
    const hlo::Shape w_shape = MakeShape(PrimitiveType::kF32, {128, 128});
    const hlo::Shape carry = hlo::MakeTupleShape({whole, x_shape, w_shape, whole, whole});
    const auto element = [&](hlo::Computation* c, Instruction* tuple, int64_t n) {
      Instruction* e = c->Add(Opcode::kGetTupleElement, carry.tuple[n], {tuple});
      e->mutable_attrs().set_tuple_index(n);
      return e;
    };
    body = m.module().AddComputation("body");
    Instruction* p = body->AddParameter(0, carry, "p");
    Instruction* one = hlo::AddIntConstant(body, PrimitiveType::kS32, 1);
    Instruction* inner_w = element(body, p, 2);
    Instruction* tanh = body->Add(Opcode::kTanh, w_shape, {inner_w});
    Instruction* dot = body->Add(Opcode::kDot, x_shape, {element(body, p, 1), tanh});
    hlo::SetDotDims(dot, {{1}, {0}, {}, {}});
    Instruction* next = body->Add(Opcode::kAdd, whole, {element(body, p, 0), one});
    Instruction* unread = body->Add(Opcode::kAdd, whole, {element(body, p, 3), one});
    body->set_root(
        body->Add(Opcode::kTuple, carry, {next, dot, inner_w, unread, element(body, p, 4)}));

    condition = m.module().AddComputation("condition");
    Instruction* q = condition->AddParameter(0, carry, "q");
    Instruction* less = condition->Add(Opcode::kCompare, MakeShape(PrimitiveType::kPred, {}),
                                       {element(condition, q, 0), element(condition, q, 4)});
    less->mutable_attrs().set_comparison_direction("LT");
    condition->set_root(less);

    hlo::Computation& entry = m.entry();
    Instruction* zero = hlo::AddIntConstant(&entry, PrimitiveType::kS32, 0);
    Instruction* limit = hlo::AddIntConstant(&entry, PrimitiveType::kS32, 5);
    Instruction* x = m.Parameter({8, 128});
    w = m.Parameter({128, 128});
    Instruction* init = entry.Add(Opcode::kTuple, carry, {zero, x, w, zero, limit});
    loop = entry.Add(Opcode::kWhile, carry, {init}, "loop");
    loop->set_called({body, condition});
    result = element(&entry, loop, 1);
    m.Return({result, element(&entry, loop, 2)});
  }
};

TEST(LoopCarries, WhatNeverChangesAndWhatNobodyReads) {
  Loop l;
  EXPECT_TRUE(hlo::SimplifyLoopCarries(l.m.module()));
  ASSERT_TRUE(hlo::Verify(l.m.module()).ok());
  // The counter, x and w; the limit is a constant of the condition.
  EXPECT_EQ(l.loop->shape().tuple.size(), 3u);
  EXPECT_EQ(hlo::TripCount(*l.loop), 5);
  EXPECT_EQ(l.condition->root()->operand(1)->opcode(), Opcode::kConstant);
  EXPECT_EQ(l.m.entry().root()->operand(1), l.w);
  EXPECT_EQ(l.result->attrs().tuple_index(), 1);
  EXPECT_FALSE(hlo::SimplifyLoopCarries(l.m.module()));
}

TEST(HoistInvariants, AKernelOnWhatTheLoopOnlyReads) {
  Loop l;
  ASSERT_TRUE(HoistInvariants(l.m.module(), l.m.target()).ok());
  ASSERT_TRUE(hlo::Verify(l.m.module()).ok());
  // The counter, x and tanh(w); nobody reads w itself any more.
  ASSERT_EQ(l.loop->shape().tuple.size(), 3u);
  const Instruction* before = l.loop->operand(0)->operand(2);
  EXPECT_EQ(before->opcode(), Opcode::kTanh);
  EXPECT_EQ(before->operand(0), l.w);
  EXPECT_EQ(l.body->root()->operand(1)->operand(1)->opcode(), Opcode::kGetTupleElement);
  EXPECT_EQ(hlo::TripCount(*l.loop), 5);
}

}  // namespace
}  // namespace tpusim::passes
