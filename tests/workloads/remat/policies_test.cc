#include "workloads/remat/policies.h"

#include "remat_testing.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::remat {
namespace {

using hlo::Opcode;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(StatedPolicyText, IsANameAndAPolicy) {
  const auto parsed = ParseStatedPolicy("attention=*=offloaded");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->name, "attention=*");
  EXPECT_EQ(parsed->policy, Policy::kOffloaded);
  for (const char* text : {"", "a", "=saved", "a=", "a=kept", "a=Saved"}) {
    EXPECT_THAT(Message(ParseStatedPolicy(text).status()), HasSubstr("is not NAME=saved")) << text;
  }
}

// y = tanh(x w) w, and backward, behind a barrier, tanh(x w) again, for g * tanh(x w).
constexpr char kUnrolled[] = R"(HloModule unrolled
ENTRY main {
  x = f32[8,8] parameter(0)
  w = f32[8,8] parameter(1)
  dot.1 = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  tanh.1 = f32[8,8] tanh(dot.1)
  name.1 = f32[8,8] reduce-precision(tanh.1), NAMED
  y = f32[8,8] dot(name.1, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[8,8] negate(y)
  all = (f32[8,8], f32[8,8], f32[8,8]) tuple(x, w, g)
  barrier = (f32[8,8], f32[8,8], f32[8,8]) opt-barrier(all)
  x.2 = f32[8,8] get-tuple-element(barrier), index=0
  w.2 = f32[8,8] get-tuple-element(barrier), index=1
  g.2 = f32[8,8] get-tuple-element(barrier), index=2
  dot.2 = f32[8,8] dot(x.2, w.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  tanh.2 = f32[8,8] OPERATION(dot.2)
  name.2 = f32[8,8] reduce-precision(tanh.2), AGAIN
  ROOT result = f32[8,8] multiply(name.2, g.2), BACKWARD
})";

std::unique_ptr<hlo::Module> Unrolled(const std::string& again = "tanh") {
  return Parsed(absl::StrReplaceAll(kUnrolled, {{"OPERATION", again}}));
}

TEST(Unrolled, ASavedValueIsNotComputedAgain) {
  const auto module = Unrolled();
  ASSERT_EQ(State("n=saved", *module), absl::OkStatus());
  EXPECT_EQ(CountOf(*module, Opcode::kTanh), 1);
  EXPECT_EQ(CountOf(*module, Opcode::kDot), 2);
  // It comes in through the barrier, beside g; x and w are of no use there any more.
  const hlo::Instruction* product = module->entry()->root();
  const hlo::Instruction* barrier = product->operand(0)->operand(0);
  ASSERT_EQ(barrier->opcode(), Opcode::kOptBarrier);
  EXPECT_THAT(barrier->operand(0)->operands(), SizeIs(2));
  // The forward pass uses it too: as JAX rounds what it saves.
  EXPECT_EQ(barrier->operand(0)->operand(0)->opcode(), Opcode::kReducePrecision);
}

TEST(Unrolled, AnOffloadedValueGoesToTheHostAndBack) {
  const auto module = Unrolled();
  ASSERT_EQ(State("n=offloaded", *module), absl::OkStatus());
  EXPECT_EQ(CountOf(*module, Opcode::kTanh), 1);
  const hlo::Instruction* back = module->entry()->root()->operand(0);
  EXPECT_EQ(hlo::PlacementOf(*back), hlo::Placement::kToDevice);
  const hlo::Instruction* barrier = back->operand(0)->operand(0);
  ASSERT_EQ(barrier->opcode(), Opcode::kOptBarrier);
  EXPECT_EQ(hlo::PlacementOf(*barrier->operand(0)->operand(0)), hlo::Placement::kToHost);
}

TEST(Unrolled, WhatIsRecomputedStays) {
  const auto module = Unrolled();
  ASSERT_EQ(State("n=recomputed", *module), absl::OkStatus());
  EXPECT_EQ(CountOf(*module, Opcode::kTanh), 2);
}

TEST(Unrolled, AnotherValueOfTheSameNameIsRefused) {
  const auto module = Unrolled("cosine");
  EXPECT_THAT(
      Message(State("n=saved", *module)),
      HasSubstr("name.2 (f/rematted_computation/name) is computed again, but not seen to be "
                "a value of the forward pass"));
}

TEST(Unrolled, NamesThatAreNotThereAreNamed) {
  const auto module = Unrolled();
  EXPECT_EQ(Message(State("m*=saved", *module)),
            "--remat m*=saved: the program has no value of that name; its names are n");
  const auto nameless = Parsed("HloModule m\nENTRY main {\n  ROOT x = f32[8] parameter(0)\n}");
  EXPECT_THAT(Message(State("n=saved", *nameless)), HasSubstr("it has no names"));
}

TEST(Unrolled, WhatTheProgramHasSavedIsNotRecomputed) {
  const auto module = Parsed(R"(HloModule saved
ENTRY main {
  x = f32[8,8] parameter(0)
  tanh.1 = f32[8,8] tanh(x)
  name.1 = f32[8,8] reduce-precision(tanh.1), NAMED
  y = f32[8,8] negate(name.1)
  ROOT result = f32[8,8] multiply(name.1, y), BACKWARD
})");
  EXPECT_EQ(State("n=saved", *module), absl::OkStatus());
  EXPECT_THAT(Message(State("n=recomputed", *module)),
              HasSubstr("has 'n' saved already; export it with full rematerialisation"));
  EXPECT_THAT(Message(State("n=offloaded", *module)), HasSubstr("has 'n' saved already"));
}

// Four layers x = tanh(x w[i]): the forward loop leaves each x in a stack, the backward loop, from
// the last one on, computes tanh(x w[i]) again and multiplies its cotangent by it.
constexpr char kScan[] = R"(HloModule scan
forward {
  carry = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  x = f32[8,8] get-tuple-element(carry), index=1
  stack = f32[4,8,8] get-tuple-element(carry), index=2
  ws = f32[4,8,8] get-tuple-element(carry), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  slice = f32[1,8,8] dynamic-slice(ws, i, zero, zero), dynamic_slice_sizes={1,8,8}
  w = f32[8,8] reshape(slice)
  dot.1 = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  tanh.1 = f32[8,8] tanh(dot.1)
  name.1 = f32[8,8] reduce-precision(tanh.1), NAMED
  slot = f32[1,8,8] reshape(x)
  stack.1 = f32[4,8,8] dynamic-update-slice(stack, slot, WRITTEN_AT, zero, zero)
  i.1 = s32[] add(i, one)
  ROOT next = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) tuple(i.1, name.1, stack.1, ws)
}
more {
  carry = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  four = s32[] constant(4)
  ROOT less = pred[] compare(i, four), direction=LT
}
backward {
  carry = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  g = f32[8,8] get-tuple-element(carry), index=1
  stack = f32[4,8,8] get-tuple-element(carry), index=2
  ws = f32[4,8,8] get-tuple-element(carry), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  three = s32[] constant(3)
  last = s32[] subtract(three, i)
  slice.x = f32[1,8,8] dynamic-slice(stack, last, zero, zero), dynamic_slice_sizes={1,8,8}
  x = f32[8,8] reshape(slice.x)
  slice.w = f32[1,8,8] dynamic-slice(ws, WEIGHTS_AT, zero, zero), dynamic_slice_sizes={1,8,8}
  w = f32[8,8] reshape(slice.w)
  dot.2 = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  tanh.2 = f32[8,8] tanh(dot.2)
  name.2 = f32[8,8] reduce-precision(tanh.2), AGAIN
  product = f32[8,8] multiply(name.2, g), BACKWARD
  i.1 = s32[] add(i, one)
  ROOT next = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) tuple(i.1, product, stack, ws)
}
more_backward {
  carry = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  four = s32[] constant(4)
  ROOT less = pred[] compare(i, four), direction=LT
}
ENTRY main {
  x = f32[8,8] parameter(0)
  ws = f32[4,8,8] parameter(1)
  zero = s32[] constant(0)
  none = f32[] constant(0)
  empty = f32[4,8,8] broadcast(none), dimensions={}
  first = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) tuple(zero, x, empty, ws)
  layers = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) while(first), condition=more, body=forward
  y = f32[8,8] get-tuple-element(layers), index=1
  xs = f32[4,8,8] get-tuple-element(layers), index=2
  g = f32[8,8] negate(y)
  second = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) tuple(zero, g, xs, ws)
  back = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) while(second), condition=more_backward, body=backward
  ROOT result = f32[8,8] get-tuple-element(back), index=1
})";

std::unique_ptr<hlo::Module> Scan(const std::string& weights_at = "last",
                                  const std::string& written_at = "i") {
  return Parsed(
      absl::StrReplaceAll(kScan, {{"WEIGHTS_AT", weights_at}, {"WRITTEN_AT", written_at}}));
}

hlo::Computation* BodyOf(const hlo::Module& module, std::string_view name) {
  for (hlo::Computation* computation : module.computations()) {
    if (computation->name().starts_with(name)) return computation;
  }
  return nullptr;
}

TEST(Scan, ASavedValueGoesThroughAStackOfItsOwn) {
  const auto module = Scan();
  ASSERT_EQ(State("n=saved", *module), absl::OkStatus());
  // The product of x and w is not needed again, so neither are the stack of x nor, in the
  // backward loop, the weights: each loop carries its counter, a value and the new stack, the
  // forward one the weights too.
  EXPECT_EQ(CountOf(*module, Opcode::kDot), 1);
  EXPECT_EQ(CountOf(*module, Opcode::kTanh), 1);
  const hlo::Computation* forward = BodyOf(*module, "forward");
  const hlo::Computation* backward = BodyOf(*module, "backward");
  EXPECT_THAT(forward->root()->operands(), SizeIs(4));
  EXPECT_THAT(backward->root()->operands(), SizeIs(3));
  const hlo::Instruction* product = backward->root()->operand(1);
  const hlo::Instruction* slice = product->operand(0)->operand(0);
  ASSERT_EQ(slice->opcode(), Opcode::kDynamicSlice);
  // At the index of what the iteration reads otherwise.
  EXPECT_EQ(slice->operand(1)->opcode(), Opcode::kSubtract);
  EXPECT_EQ(slice->operand(0)->shape(), hlo::MakeShape(hlo::PrimitiveType::kF32, {4, 8, 8}));
}

TEST(Scan, AnOffloadedValueIsStackedOnTheHost) {
  const auto module = Scan();
  ASSERT_EQ(State("n=offloaded", *module), absl::OkStatus());
  EXPECT_EQ(CountOf(*module, Opcode::kTanh), 1);
  EXPECT_EQ(CountOf(*module, Opcode::kCustomCall), 2);
  // Off-loaded, it is not rounded.
  EXPECT_EQ(CountOf(*module, Opcode::kReducePrecision), 1);  // its name
  const hlo::Instruction* product = BodyOf(*module, "backward")->root()->operand(1);
  EXPECT_EQ(hlo::PlacementOf(*product->operand(0)), hlo::Placement::kToDevice);
}

TEST(Scan, NamesAreListed) {
  const auto module = Scan();
  const auto names = NamesOf(*module);
  ASSERT_TRUE(names.ok());
  ASSERT_THAT(*names, SizeIs(1));
  EXPECT_EQ(names->at(0).name, "n");
  EXPECT_EQ(names->at(0).values, 4);
  EXPECT_EQ(names->at(0).bytes, Bytes(4 * 8 * 8 * 4));
  EXPECT_EQ(names->at(0).recomputed, 4);
  EXPECT_EQ(names->at(0).saved, 0);
  EXPECT_EQ(names->at(0).refused, "");
  ASSERT_EQ(State("n=saved", *module), absl::OkStatus());
}

// The backward pass multiplies by the weights of another layer than the forward pass did.
TEST(Scan, WeightsOfAnotherLayerAreRefused) {
  EXPECT_THAT(Message(State("n=saved", *Scan("i"))), HasSubstr("not seen to be"));
}

// Every iteration writes the same slot: what is read there is not of the iteration.
TEST(Scan, AStackWithoutASlotPerIterationIsRefused) {
  EXPECT_THAT(Message(State("n=saved", *Scan("last", "zero"))), HasSubstr("not seen to be"));
}

// A stack that is written from the last slot on, and read in the same order.
TEST(Scan, StacksMayBeWrittenBackwards) {
  const std::string text = absl::StrReplaceAll(
      kScan,
      {{"  slot = ", "  three = s32[] constant(3)\n  down = s32[] subtract(three, i)\n  slot = "},
       {"WRITTEN_AT", "down"},
       {"WEIGHTS_AT", "i"}});
  // Slot 3 - i of the forward loop is read in iteration i of the backward one: both in order.
  const auto module = Parsed(text);
  ASSERT_EQ(State("n=saved", *module), absl::OkStatus());
  EXPECT_EQ(CountOf(*module, Opcode::kTanh), 1);
}

}  // namespace
}  // namespace tpusim::remat
