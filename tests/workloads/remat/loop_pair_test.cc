#include "workloads/remat/loop_pair.h"

#include "remat_testing.h"

namespace tpusim::remat {
namespace {

using ::testing::Optional;

// A forward loop of six iterations that writes x into slot WRITTEN of a stack, and a backward loop
// of BACK iterations that reads slot READ.
constexpr char kLoops[] = R"(HloModule loops
forward {
  carry = (s32[], f32[8], f32[6,8]) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  x = f32[8] get-tuple-element(carry), index=1
  stack = f32[6,8] get-tuple-element(carry), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  five = s32[] constant(5)
  down = s32[] subtract(five, i)
  slot = f32[1,8] broadcast(x), dimensions={1}
  stack.1 = f32[6,8] dynamic-update-slice(stack, slot, WRITTEN, zero)
  y = f32[8] tanh(x)
  i.1 = s32[] add(i, one)
  ROOT next = (s32[], f32[8], f32[6,8]) tuple(i.1, y, stack.1)
}
more {
  carry = (s32[], f32[8], f32[6,8]) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  six = s32[] constant(6)
  ROOT less = pred[] compare(i, six), direction=LT
}
backward {
  carry = (s32[], f32[8], f32[6,8]) parameter(0)
  k = s32[] get-tuple-element(carry), index=0
  g = f32[8] get-tuple-element(carry), index=1
  stack = f32[6,8] get-tuple-element(carry), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  two = s32[] constant(2)
  five = s32[] constant(5)
  last = s32[] subtract(five, k)
  double = s32[] multiply(k, two)
  slice = f32[1,8] dynamic-slice(stack, READ, zero), dynamic_slice_sizes={1,8}
  x = f32[8] reshape(slice)
  h = f32[8] multiply(g, x)
  k.1 = s32[] add(k, one)
  ROOT next = (s32[], f32[8], f32[6,8]) tuple(k.1, h, stack)
}
more_backward {
  carry = (s32[], f32[8], f32[6,8]) parameter(0)
  k = s32[] get-tuple-element(carry), index=0
  trips = s32[] constant(BACK)
  ROOT less = pred[] compare(k, trips), direction=LT
}
ENTRY main {
  x = f32[8] parameter(0)
  other = f32[6,8] parameter(1)
  zero = s32[] constant(0)
  first = (s32[], f32[8], f32[6,8]) tuple(zero, x, other)
  layers = (s32[], f32[8], f32[6,8]) while(first), condition=more, body=forward
  y = f32[8] get-tuple-element(layers), index=1
  xs = f32[6,8] get-tuple-element(layers), index=2
  second = (s32[], f32[8], f32[6,8]) tuple(zero, y, STACK)
  ROOT back = (s32[], f32[8], f32[6,8]) while(second), condition=more_backward, body=backward
})";

// Returns the iteration of the forward loop that each one of the backward loop belongs to.
std::optional<hlo::Affine> Iteration(const std::string& written, const std::string& read,
                                     const std::string& back = "6",
                                     const std::string& stack = "xs") {
  const auto module = Parsed(absl::StrReplaceAll(
      kLoops, {{"WRITTEN", written}, {"READ", read}, {"BACK", back}, {"STACK", stack}}));
  hlo::Instruction* backward = module->entry()->root();
  hlo::Instruction* forward = backward->operand(0)->operand(1)->operand(0);
  hlo::ModuleLoops loops(*module);
  const auto pair = PairOf(forward, backward, loops);
  if (!pair) return std::nullopt;
  EXPECT_EQ(pair->slots, 6);
  EXPECT_EQ(pair->written_at->name(), written);
  return pair->iteration;
}

TEST(LoopPairs, AnIterationReadsWhatAnotherHasWritten) {
  EXPECT_THAT(Iteration("i", "k"), Optional(hlo::Affine{1, 0}));
  EXPECT_THAT(Iteration("i", "last"), Optional(hlo::Affine{-1, 5}));
  EXPECT_THAT(Iteration("down", "k"), Optional(hlo::Affine{-1, 5}));  // 5 - i = k
  EXPECT_THAT(Iteration("down", "last"), Optional(hlo::Affine{1, 0}));
  // Every other slot, in three iterations.
  EXPECT_THAT(Iteration("i", "double", "3"), Optional(hlo::Affine{2, 0}));
}

TEST(LoopPairs, ThereIsNone) {
  EXPECT_EQ(Iteration("zero", "k"), std::nullopt);         // all iterations write one slot
  EXPECT_EQ(Iteration("i", "double"), std::nullopt);       // slots 6, 8 and 10 are not there
  EXPECT_EQ(Iteration("i", "k", "7"), std::nullopt);       // nor is slot 6
  EXPECT_EQ(Iteration("i", "k", "6", "other"), std::nullopt);  // another stack
}

// In iteration k of the backward loop, 5 - k is what i is in iteration 5 - k of the forward loop.
TEST(LoopPairs, IntegersAreComparedAcrossLoops) {
  LoopPair pair;
  pair.iteration = {-1, 5};
  EXPECT_TRUE(pair.Same({-1, 5}, {1, 0}));
  EXPECT_TRUE(pair.Same({-2, 13}, {2, 3}));  // 2 (5 - k) + 3
  EXPECT_FALSE(pair.Same({1, 0}, {1, 0}));
}

}  // namespace
}  // namespace tpusim::remat
