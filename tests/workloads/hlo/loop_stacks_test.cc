#include "workloads/hlo/analysis/loop_stacks.h"

#include "absl/strings/str_replace.h"
#include "hlo_test_util.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

// Four iterations that write what they compute into element 1, an array of `STACK`.
constexpr char kStack[] = R"(HloModule m
body {
  c = (s32[], STACK) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  stack = STACK get-tuple-element(c), index=1
  zero = s32[] constant(0)
  one = s32[] constant(1)
  three = s32[] constant(3)
  value = f32[] constant(7)
  slot = SLOT broadcast(value), dimensions={}
  down = s32[] subtract(three, i)
  UPDATE
  i.1 = s32[] add(i, one)
  ROOT next = (s32[], STACK) tuple(i.1, updated)
}
condition {
  c = (s32[], STACK) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  four = s32[] constant(4)
  ROOT less = pred[] compare(i, four), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  empty = STACK parameter(0)
  first = (s32[], STACK) tuple(zero, empty)
  ROOT loop = (s32[], STACK) while(first), condition=condition, body=body
})";

class LoopStacksTest : public ::testing::Test {
 protected:
  std::optional<LoopStack> Stack(const std::string& update,
                                 const std::string& shape = "f32[4,8]",
                                 const std::string& slot = "f32[1,8]") {
    auto parsed = ParseHloText(
        absl::StrReplaceAll(kStack, {{"UPDATE", update}, {"STACK", shape}, {"SLOT", slot}}));
    EXPECT_TRUE(parsed.ok()) << Message(parsed.status());
    module_ = std::move(parsed->module);
    EXPECT_EQ(Message(Verify(*module_)), "");
    return StackOf(*module_->entry()->root(), 1);
  }
  SlotOrder Order(const std::string& update, const std::string& shape = "f32[4,8]",
                  const std::string& slot = "f32[1,8]") {
    const auto stack = Stack(update, shape, slot);
    if (!stack) return SlotOrder::kNone;
    const KnownValues values(*module_);
    return OrderOf(stack->slot, LoopFacts(*module_->entry()->root(), values));
  }

  std::unique_ptr<Module> module_;
};

TEST_F(LoopStacksTest, SlotsAreWrittenInOrder) {
  EXPECT_EQ(Order("updated = f32[4,8] dynamic-update-slice(stack, slot, i, zero)"),
            SlotOrder::kAscending);
  EXPECT_EQ(Order("updated = f32[4,8] dynamic-update-slice(stack, slot, down, zero)"),
            SlotOrder::kDescending);
  EXPECT_EQ(Order("updated = f32[4,8] dynamic-update-slice(stack, slot, one, zero)"),
            SlotOrder::kNone);
  // Along the other dimension; more slots than iterations; all of it at once; only one slot.
  EXPECT_EQ(Order("updated = f32[8,4] dynamic-update-slice(stack, slot, zero, i)", "f32[8,4]",
                  "f32[8,1]"),
            SlotOrder::kAscending);
  EXPECT_EQ(Order("updated = f32[5,8] dynamic-update-slice(stack, slot, i, zero)", "f32[5,8]"),
            SlotOrder::kNone);
  EXPECT_EQ(Order("updated = f32[4,8] dynamic-update-slice(stack, slot, i, i)", "f32[4,8]",
                  "f32[4,8]"),
            SlotOrder::kAscending);
  EXPECT_EQ(Order("updated = f32[1,8] dynamic-update-slice(stack, slot, i, i)", "f32[1,8]"),
            SlotOrder::kAscending);
}

TEST_F(LoopStacksTest, ASlotIsOneIndexAlongOneDimension) {
  EXPECT_FALSE(Stack("updated = f32[4,8] dynamic-update-slice(stack, slot, i, zero)", "f32[4,8]",
                     "f32[2,8]"));
  EXPECT_FALSE(Stack("updated = f32[4,8] dynamic-update-slice(stack, slot, i, i)", "f32[4,8]",
                     "f32[1,1]"));
  const auto stack = Stack("updated = f32[4,8] dynamic-update-slice(stack, slot, i, zero)");
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->slot.dimension, 0);
  EXPECT_EQ(stack->slot.index->name(), "i");
}

TEST_F(LoopStacksTest, WhatIsReadOtherwiseIsNotOnlyWritten) {
  const std::string update = "dynamic-update-slice(stack, slot, i, zero)";
  EXPECT_TRUE(Stack("updated = f32[4,8] " + update)->only_written);
  EXPECT_FALSE(Stack("u = f32[4,8] " + update + "\n  updated = f32[4,8] copy(u)")->only_written);
  const auto read = Stack("sum = f32[4,8] add(stack, stack)\n  s = f32[1,8] slice(sum), "
                          "slice={[0:1], [0:8]}\n  updated = f32[4,8] dynamic-update-slice(stack, "
                          "s, i, zero)");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->only_written);
  // An update of something else is no stack.
  EXPECT_FALSE(Stack("sum = f32[4,8] add(stack, stack)\n  updated = f32[4,8] "
                     "dynamic-update-slice(sum, slot, i, zero)"));
}

// After layouts are assigned, bitcasts stand between the element and its update.
TEST_F(LoopStacksTest, BitcastsAreLookedThrough) {
  const auto stack = Stack("flat = f32[4,1,8] bitcast(stack)\n  row = f32[1,1,8] bitcast(slot)\n"
                           "  u = f32[4,1,8] dynamic-update-slice(flat, row, i, zero, zero)\n"
                           "  updated = f32[4,8] bitcast(u)");
  ASSERT_TRUE(stack);
  EXPECT_TRUE(stack->only_written);
}

}  // namespace
}  // namespace tpusim::hlo
