#include "workloads/passes/loops/sink_initializers.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/passes/pass_test.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::passes {
namespace {

// for (i = 0; i < limit; ++i) acc = use(acc, x), with acc = broadcast(constant) before.
struct AccumulatorLoop {
  SmallModule m;
  hlo::Computation* body = nullptr;
  Instruction *element = nullptr, *loop = nullptr, *init = nullptr;

  AccumulatorLoop(int64_t limit, Opcode use, bool with_broadcast) {
    const hlo::Shape array = MakeShape(PrimitiveType::kF32, {256, 512});
    const hlo::Shape scalar = MakeShape(PrimitiveType::kS32, {});
    const hlo::Shape carry = hlo::MakeTupleShape({scalar, array});
    hlo::Module& module = m.module();

    body = module.AddComputation("body");
    Instruction* p = body->AddParameter(0, carry, "p");
    Instruction* i = body->Add(Opcode::kGetTupleElement, scalar, {p}, "i");
    element = body->Add(Opcode::kGetTupleElement, array, {p}, "acc");
    element->mutable_attrs().set_tuple_index(1);
    Instruction* one = hlo::AddIntConstant(body, PrimitiveType::kS32, 1, "one");
    Instruction* next = body->Add(Opcode::kAdd, scalar, {i, one}, "next");
    Instruction* sum = use == Opcode::kTranspose ? body->Add(use, array, {element}, "use")
                                                 : body->Add(use, array, {element, element}, "use");
    body->set_root(body->Add(Opcode::kTuple, carry, {next, sum}, "carry"));

    hlo::Computation* condition = module.AddComputation("condition");
    Instruction* q = condition->AddParameter(0, carry, "p");
    Instruction* j = condition->Add(Opcode::kGetTupleElement, scalar, {q}, "i");
    Instruction* end = hlo::AddIntConstant(condition, PrimitiveType::kS32, limit, "end");
    Instruction* compare =
        condition->Add(Opcode::kCompare, MakeShape(PrimitiveType::kPred, {}), {j, end}, "less");
    compare->mutable_attrs().set_comparison_direction("LT");
    condition->set_root(compare);

    hlo::Computation& entry = m.entry();
    Instruction* start = hlo::AddIntConstant(&entry, PrimitiveType::kS32, 0, "start");
    Instruction* value =
        entry.Add(Opcode::kConstant, MakeShape(PrimitiveType::kF32, {}), {}, "value");
    Instruction* acc = with_broadcast ? entry.Add(Opcode::kBroadcast, array, {value}, "fill")
                                      : m.Parameter({256, 512});
    init = entry.Add(Opcode::kTuple, carry, {start, acc}, "init");
    loop = entry.Add(Opcode::kWhile, carry, {init}, "loop");
    loop->set_called({body, condition});
    entry.set_root(loop);
    EXPECT_TRUE(SinkInitializers(module, m.target()).ok());
  }

  bool Sunk() const { return init->operand(1)->opcode() == Opcode::kCustomCall; }
};

TEST(SinkInitializers, TheFirstIterationSelectsTheConstant) {
  const AccumulatorLoop l(3, Opcode::kAdd, true);
  ASSERT_TRUE(l.Sunk());
  EXPECT_EQ(l.init->operand(1)->attrs().custom_call_target(), hlo::kAllocateBuffer);
  const Instruction* sum = l.body->root()->operand(1);
  const Instruction* select = sum->operand(0);
  ASSERT_EQ(select->opcode(), Opcode::kSelect);
  EXPECT_EQ(sum->operand(1), select);
  EXPECT_EQ(select->operand(2), l.element);
  EXPECT_EQ(select->operand(1)->operand(0)->opcode(), Opcode::kConstant);
  const Instruction* first = select->operand(0)->operand(0);
  EXPECT_EQ(first->attrs().comparison_direction(), "EQ");
  EXPECT_EQ(hlo::ScalarIntConstant(*first->operand(1)), 0);
}

TEST(SinkInitializers, OnlyConstants) {
  EXPECT_FALSE(AccumulatorLoop(3, Opcode::kAdd, false).Sunk());
}

TEST(SinkInitializers, ALoopThatMayNotRunKeepsItsInitialValue) {
  EXPECT_FALSE(AccumulatorLoop(0, Opcode::kAdd, true).Sunk());
}

// A select before a transpose would be a pass over memory of its own.
TEST(SinkInitializers, OnlyWhereTheSelectFuses) {
  EXPECT_FALSE(AccumulatorLoop(3, Opcode::kTranspose, true).Sunk());
}

// A stack of four rows that starts as zeros and that four iterations write, the row at `start`.
bool StackIsAllocated(int rows, const std::string& start, bool read = false) {
  PassText test(R"(HloModule m
body {
  c = (s32[], f32[4,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  s = f32[4,512] get-tuple-element(c), index=1
  zero = s32[] constant(0)
  one = s32[] constant(1)
  three = s32[] constant(3)
  back = s32[] subtract(three, i)
  low = f32[] constant(0)
  x = f32[)" + std::to_string(rows) +
                R"(,512] broadcast(low), dimensions={}
  d = f32[4,512] dynamic-update-slice(s, x, )" +
                start + ", zero)\n" + (read ? "  n = f32[4,512] add(d, s)\n" : "") +
                R"(  j = s32[] add(i, one)
  ROOT t = (s32[], f32[4,512]) tuple(j, )" +
                (read ? "n" : "d") + R"()
}
condition {
  c = (s32[], f32[4,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY e {
  zero = f32[] constant(0)
  s = f32[4,512] broadcast(zero), dimensions={}
  start = s32[] constant(0)
  init = (s32[], f32[4,512]) tuple(start, s)
  ROOT w = (s32[], f32[4,512]) while(init), condition=condition, body=body
})");
  EXPECT_TRUE(test.Run("sink-initializers").ok());
  return HasLines(test.text(), "*AllocateBuffer*\n*while(*");
}

TEST(SinkInitializers, AStackThatTheLoopWritesWholeIsNotFilledBefore) {
  EXPECT_TRUE(StackIsAllocated(1, "i"));  // rows 0, 1, 2, 3
  EXPECT_TRUE(StackIsAllocated(4, "i"));  // all of it every time
}

// Only the first row; backwards, which the TPU compiler does not recognise; what is read before it
// is written.
TEST(SinkInitializers, OtherStacksAreFilled) {
  EXPECT_FALSE(StackIsAllocated(1, "zero"));
  EXPECT_FALSE(StackIsAllocated(1, "back"));
  EXPECT_FALSE(StackIsAllocated(1, "i", /*read=*/true));
}

}  // namespace
}  // namespace tpusim::passes
