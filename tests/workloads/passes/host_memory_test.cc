// Arrays on the host: which values live there, what moves, when.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/workloads/passes/pass_test.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/cost.h"

namespace tpusim::passes {
namespace {

// A scan that saves a value per iteration on the host, and one that reads them backwards.
// `saved` is the array before the first iteration, `slot` the place in it.
std::string SavedByScan(const std::string& saved, const std::string& slot = "i") {
  return R"(HloModule m
forward {
  carry = (s32[], f32[8,128], f32[4,8,128]) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  zero = s32[] constant(0)
  one = s32[] constant(1)
  two = s32[] constant(2)
  next = s32[] add(i, one)
  double = s32[] add(i, i)
  x = f32[8,128] get-tuple-element(carry), index=1
  stack = f32[4,8,128] get-tuple-element(carry), index=2
  y = f32[8,128] tanh(x)
  there = f32[8,128] custom-call(x), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true, frontend_attributes={_xla_buffer_placement="pinned_host"}
  row = f32[1,8,128] reshape(there)
  update = f32[4,8,128] dynamic-update-slice(stack, row, )" +
         slot + R"(, zero, zero)
  ROOT r = (s32[], f32[8,128], f32[4,8,128]) tuple(next, y, update)
}
more {
  carry.1 = (s32[], f32[8,128], f32[4,8,128]) parameter(0)
  i.1 = s32[] get-tuple-element(carry.1), index=0
  limit = s32[] constant(4)
  ROOT less = pred[] compare(i.1, limit), direction=LT
}
backward {
  carry.2 = (s32[], f32[8,128], f32[4,8,128]) parameter(0)
  i.2 = s32[] get-tuple-element(carry.2), index=0
  one.2 = s32[] constant(1)
  three = s32[] constant(3)
  next.2 = s32[] add(i.2, one.2)
  back = s32[] subtract(three, i.2)
  g = f32[8,128] get-tuple-element(carry.2), index=1
  stack.2 = f32[4,8,128] get-tuple-element(carry.2), index=2
  zero.2 = s32[] constant(0)
  slice = f32[1,8,128] dynamic-slice(stack.2, back, zero.2, zero.2), dynamic_slice_sizes={1,8,128}
  flat = f32[8,128] reshape(slice)
  here = f32[8,128] custom-call(flat), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true, frontend_attributes={_xla_buffer_placement="device"}
  product = f32[8,128] multiply(g, here)
  ROOT r.2 = (s32[], f32[8,128], f32[4,8,128]) tuple(next.2, product, stack.2)
}
more.2 {
  carry.3 = (s32[], f32[8,128], f32[4,8,128]) parameter(0)
  i.3 = s32[] get-tuple-element(carry.3), index=0
  limit.3 = s32[] constant(4)
  ROOT less.3 = pred[] compare(i.3, limit.3), direction=LT
}
ENTRY e {
  x.0 = f32[8,128] parameter(0)
  given = f32[4,8,128] parameter(1)
  start = s32[] constant(0)
  nothing = f32[] constant(0)
  zeros = f32[4,8,128] broadcast(nothing), dimensions={}
  initial = (s32[], f32[8,128], f32[4,8,128]) tuple(start, x.0, )" +
         saved + R"()
  scan = (s32[], f32[8,128], f32[4,8,128]) while(initial), condition=more, body=forward
  y.0 = f32[8,128] get-tuple-element(scan), index=1
  all = f32[4,8,128] get-tuple-element(scan), index=2
  initial.2 = (s32[], f32[8,128], f32[4,8,128]) tuple(start, y.0, all)
  scan.2 = (s32[], f32[8,128], f32[4,8,128]) while(initial.2), condition=more.2, body=backward
  ROOT out = f32[8,128] get-tuple-element(scan.2), index=1
})";
}

TEST(HostStacks, LiveWhereTheirUpdatesGo) {
  PassText test(SavedByScan("zeros"));
  EXPECT_TRUE(test.Run("memory-spaces").value());
  // Slots move by themselves, from and to values on the device.
  EXPECT_TRUE(HasLines(test.text(),
                       "reshape* = f32[1,8,128]{2,1,0} reshape(*\n"
                       "f32[4,8,128]{2,1,0:S(5)} dynamic-update-slice(*\n"))
      << test.text();
  EXPECT_TRUE(HasLines(test.text(), "f32[1,8,128]{2,1,0} dynamic-slice(*")) << test.text();
  // The stacked array is not initialised: the loop writes all of its slots.
  EXPECT_TRUE(HasLines(test.text(),
                       "f32[4,8,128]{2,1,0:S(5)} custom-call(), "
                       "custom_call_target=\"AllocateBuffer\""))
      << test.text();
  EXPECT_THAT(test.text(), testing::Not(testing::HasSubstr("placement")));
  EXPECT_FALSE(test.Run("memory-spaces").value());
}

// Values that an iteration leaves alone must be there: only what is written whole starts as
// unwritten memory.
TEST(HostStacks, WhatIsNotOverwrittenIsSentThere) {
  for (const auto& [saved, slot] :
       {std::pair{"given", "i"}, {"zeros", "double"}, {"zeros", "two"}}) {
    PassText test(SavedByScan(saved, slot));
    EXPECT_TRUE(test.Run("memory-spaces").value());
    EXPECT_TRUE(HasLines(test.text(),
                         "f32[4,8,128]{2,1,0:S(5)} custom-call(*), "
                         "custom_call_target=\"MoveToHost\""))
        << test.text();
    EXPECT_THAT(test.text(), testing::Not(testing::HasSubstr("AllocateBuffer")));
  }
}

TEST(AsyncHostCopies, WrapSlicesAndUpdates) {
  PassText test(SavedByScan("given"));
  EXPECT_TRUE(test.Run("memory-spaces,async-host-copies").value());
  for (const char* wanted : {"copy-start(*\ncopy-done(", "async-start(*\nasync-done(",
                             "dynamic-slice(", "dynamic-update-slice("}) {
    EXPECT_THAT(test.text(), testing::HasSubstr(std::string(wanted).substr(0, 10))) << test.text();
  }
  EXPECT_FALSE(test.Run("async-host-copies").value());
}

TEST(PipelineHostCopies, AnIterationApart) {
  PassText test(SavedByScan("zeros"));
  EXPECT_TRUE(test.Run("memory-spaces,simplify,pipeline-host-copies").value());
  std::vector<int64_t> trips;
  std::vector<std::string> outside;
  for (const hlo::Instruction* i : test.module().entry()->instructions()) {
    if (i->opcode() == hlo::Opcode::kWhile) trips.push_back(hlo::TripCount(*i).value());
    outside.emplace_back(hlo::OpcodeName(i->opcode()));
  }
  // Of four iterations each loop runs three; one stands before the first loop, one behind
  // the second, and between them the last slot goes out and comes back.
  EXPECT_EQ(trips, (std::vector<int64_t>{3, 3}));
  for (const char* once : {"tanh", "multiply", "dynamic-update-slice", "dynamic-slice"}) {
    EXPECT_EQ(std::count(outside.begin(), outside.end(), once), 1) << once;
  }
  // The body writes the value of the iteration before where that belongs.
  for (const hlo::Computation* c : test.module().computations()) {
    for (const hlo::Instruction* i : c->instructions()) {
      if (i->opcode() != hlo::Opcode::kDynamicUpdateSlice || c == test.module().entry()) continue;
      EXPECT_EQ(i->operand(1)->opcode(), hlo::Opcode::kGetTupleElement);
      EXPECT_EQ(i->operand(2)->opcode(), hlo::Opcode::kGetTupleElement);
      EXPECT_NE(i->operand(2)->attrs().tuple_index(), 0);
    }
  }
  EXPECT_FALSE(test.Run("memory-spaces").value());
}

// What else the loop does with its array must not see it late.
TEST(PipelineHostCopies, NotIfTheLoopReadsIt) {
  std::string text = SavedByScan("zeros");
  const std::string from = "y = f32[8,128] tanh(x)";
  text.replace(text.find(from), from.size(),
               "read = f32[1,8,128] dynamic-slice(stack, zero, zero, zero), "
               "dynamic_slice_sizes={1,8,128}\n"
               "flat.0 = f32[8,128] reshape(read)\n"
               "device = f32[8,128] custom-call(flat.0), custom_call_target=\"MoveToDevice\"\n"
               "y = f32[8,128] add(x, device)");
  PassText test(text);
  EXPECT_TRUE(test.Run("memory-spaces,pipeline-host-copies").value());  // the other loop
  for (const hlo::Instruction* i : test.module().entry()->instructions()) {
    if (i->name() != "scan") continue;
    EXPECT_EQ(hlo::TripCount(*i), 4);
  }
}

}  // namespace
}  // namespace tpusim::passes
