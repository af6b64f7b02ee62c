#include "workloads/hlo/analysis/known_values.h"

#include "hlo_test_util.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

// The instruction of that name, wherever it is.
const Instruction& Named(const Module& module, const std::string& name) {
  for (const Computation* computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->name() == name) return *i;
    }
  }
  ADD_FAILURE() << "no " << name;
  return *module.entry()->root();
}

class KnownArrays : public ::testing::Test {
 protected:
  // The elements on partition 1.
  std::optional<Integers> Of(const std::string& text, const std::string& name) {
    const auto module = ParseHloText(text).value().module;
    const auto known = KnownValues(*module).ArrayOf(Named(*module, name), /*partition=*/1);
    return known ? std::optional(known->elements) : std::nullopt;
  }
};

TEST_F(KnownArrays, ATableThatWasPrefetchedIsTheTable) {
  EXPECT_THAT(Of(R"(HloModule m
ENTRY e {
  c = s8[3] constant({4, 0, 2})
  s = (s8[3]{0:S(1)}, s8[3], u32[]) copy-start(c)
  ROOT d = s8[3]{0:S(1)} copy-done(s)
})",
                 "d"),
              Optional(ElementsAre(4, 0, 2)));
}

TEST_F(KnownArrays, AFusionIsItsRootWithItsOperands) {
  EXPECT_THAT(Of(R"(HloModule m
inner {
  p = s32[2] parameter(0)
  ROOT n = s32[2] add(p, p)
}
outer {
  p = s32[4] parameter(0)
  h = s32[2] slice(p), slice={[1:3]}
  ROOT f = s32[2] fusion(h), kind=kLoop, calls=inner
}
ENTRY e {
  c = s32[4] constant({5, 6, 7, 8})
  ROOT result = s32[2] fusion(c), kind=kLoop, calls=outer
})",
                 "result"),
              Optional(ElementsAre(12, 14)));
}

constexpr char kTwoLoops[] = R"(HloModule m
body {
  p = (s32[], s8[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  t = s8[2] get-tuple-element(p), index=1
  ROOT r = (s32[], s8[2]) tuple(n, NEXT)
}
condition {
  p = (s32[], s8[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ten = s32[] constant(10)
  ROOT l = pred[] compare(i, ten), direction=LT
}
body2 {
  p = (s32[], s8[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  inside = s8[2] get-tuple-element(p), index=1
  ROOT r = (s32[], s8[2]) tuple(n, inside)
}
ENTRY e {
  zero = s32[] constant(0)
  c = s8[2] constant({3, 1})
  a = (s32[], s8[2]) tuple(zero, c)
  w = (s32[], s8[2]) while(a), body=body, condition=condition
  behind = s8[2] get-tuple-element(w), index=1
  b = (s32[], s8[2]) tuple(zero, behind)
  ROOT v = (s32[], s8[2]) while(b), body=body2, condition=condition
})";

std::string TwoLoops(const std::string& next) {
  std::string text = kTwoLoops;
  return text.replace(text.find("NEXT"), 4, next);
}

TEST_F(KnownArrays, WhatALoopForwardsIsKnownBehindItAndInTheNextOne) {
  EXPECT_THAT(Of(TwoLoops("t"), "behind"), Optional(ElementsAre(3, 1)));
  EXPECT_THAT(Of(TwoLoops("t"), "inside"), Optional(ElementsAre(3, 1)));
}

TEST_F(KnownArrays, WhatALoopChangesIsNotKnown) {
  std::string text = TwoLoops("u");
  text.insert(text.find("  ROOT r"), "  u = s8[2] add(t, t)\n");
  EXPECT_EQ(Of(text, "behind"), std::nullopt);
  EXPECT_EQ(Of(text, "inside"), std::nullopt);
}

TEST_F(KnownArrays, AnArgumentIsNotKnown) {
  EXPECT_EQ(Of(R"(HloModule m
ENTRY e {
  x = s8[2] parameter(0)
  ROOT n = s8[2] add(x, x)
})",
               "n"),
            std::nullopt);
}

TEST(KnownScalar, FollowsThePartitionId) {
  TestModule m;
  Instruction* id = m.Add(Opcode::kPartitionId, MakeScalarShape(PrimitiveType::kU32), {});
  Instruction* four = AddIntConstant(m.entry(), PrimitiveType::kU32, 4);
  const Shape u32 = MakeScalarShape(PrimitiveType::kU32);
  Instruction* row = m.Add(Opcode::kDivide, u32, {id, four});
  Instruction* column = m.Add(Opcode::kRemainder, u32, {id, four});
  Instruction* first = m.Add(Opcode::kCompare, Pred(), {row, column});
  first->mutable_attrs().set_comparison_direction("EQ");
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*row, 6), 1);
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*column, 6), 2);
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*first, 5), 1);
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*first, 6), 0);
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*m.Param(S32({})), 0), std::nullopt);
}

// Numbers are those of their type: 2 - 5 without a sign is 2^32 - 3, of which a quarter is
// 2^30 - 1, and which is larger than 2.
TEST(KnownScalar, WrapsAround) {
  TestModule m;
  const Shape u32 = MakeShape(PrimitiveType::kU32, {});
  Instruction* two = AddIntConstant(m.entry(), PrimitiveType::kU32, 2);
  Instruction* device = m.Add(Opcode::kPartitionId, u32, {});
  Instruction* less = m.Add(Opcode::kSubtract, u32, {two, device});
  Instruction* quarter = m.Add(Opcode::kShiftRightLogical, u32, {less, two});
  Instruction* larger = m.Add(Opcode::kCompare, Pred(), {less, two});
  larger->mutable_attrs().set_comparison_direction("GT");
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*less, 5), (int64_t{1} << 32) - 3);
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*quarter, 5), (int64_t{1} << 30) - 1);
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*larger, 5), 1);
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*larger, 1), 0);
}

TEST(KnownScalar, LooksUpTables) {
  TestModule m;
  Instruction* table = m.Add(Opcode::kConstant, S32({4}), {});
  *table->mutable_attrs().mutable_literal() =
      MakeIntVectorLiteral(PrimitiveType::kS32, {7, 5, 3, 1});
  Instruction* id = m.Add(Opcode::kPartitionId, MakeScalarShape(PrimitiveType::kU32), {});
  Instruction* entry = m.Add(Opcode::kDynamicSlice, S32({1}), {table, id});
  Instruction* scalar = m.Add(Opcode::kReshape, S32({}), {entry});
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*scalar, 2), 3);
  // Starts are clamped to the table.
  EXPECT_EQ(KnownValues(m.module()).ScalarOf(*scalar, 9), 1);
}

// A select needs only the array that it takes; a slice of a table that is the same all along needs
// no start.
TEST_F(KnownArrays, WhatIsNotTakenMayBeData) {
  const std::string text = R"(HloModule m
ENTRY e {
  data = s32[2] parameter(0)
  at = s32[] parameter(1)
  known = s32[2] constant({4, 9})
  yes = pred[] constant(true)
  taken = s32[2] select(yes, known, data)
  left = s32[2] select(yes, data, known)
  alike = s32[3,2] broadcast(known), dimensions={1}
  zero = s32[] constant(0)
  row = s32[1,2] dynamic-slice(alike, at, zero), dynamic_slice_sizes={1,2}
  table = s32[3,2] iota(), iota_dimension=0
  other = s32[1,2] dynamic-slice(table, at, zero), dynamic_slice_sizes={1,2}
  ROOT all = (s32[2], s32[2], s32[1,2], s32[1,2]) tuple(taken, left, row, other)
})";
  EXPECT_THAT(Of(text, "taken"), Optional(ElementsAre(4, 9)));
  EXPECT_EQ(Of(text, "left"), std::nullopt);
  EXPECT_THAT(Of(text, "row"), Optional(ElementsAre(4, 9)));
  EXPECT_EQ(Of(text, "other"), std::nullopt);
}

// table[partition] = 10, 20, 30: without a partition only what does not ask for it is known.
TEST(KnownByPartition, IsKnownOfOneOrOfAll) {
  const auto module = ParseHloText(R"(HloModule m
ENTRY e {
  table = s32[3] constant({10, 20, 30})
  id = u32[] partition-id()
  entry = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
  first = s32[1] slice(table), slice={[0:1]}
  ROOT all = (s32[1], s32[1]) tuple(entry, first)
})").value().module;
  const KnownValues values(*module);
  const Instruction &entry = Named(*module, "entry"), &first = Named(*module, "first");
  EXPECT_EQ(values.ScalarOf(entry, 2), 30);
  EXPECT_EQ(values.ScalarOf(entry), std::nullopt);
  EXPECT_EQ(values.ScalarOf(first), 10);
  EXPECT_FALSE(values.ArrayOf(entry, 1)->everywhere);
  EXPECT_TRUE(values.ArrayOf(first, 1)->everywhere);
}

// A call hands a scalar into a branch-free callee; a second caller with another one makes it data.
TEST(KnownThroughCalls, WithOneCallerOnly) {
  const std::string text = R"(HloModule m
callee {
  p = s32[] parameter(0)
  two = s32[] constant(2)
  ROOT twice = s32[] multiply(p, two)
}
ENTRY e {
  five = s32[] constant(5)
  six = s32[] constant(6)
  a = s32[] call(five), to_apply=callee
  SECOND
})";
  for (const bool twice : {false, true}) {
    std::string with = text;
    with.replace(with.find("SECOND"), 6,
                 twice ? "ROOT b = s32[] call(six), to_apply=callee" : "ROOT b = s32[] negate(a)");
    const auto module = ParseHloText(with).value().module;
    EXPECT_EQ(KnownValues(*module).ScalarOf(Named(*module, "twice")),
              twice ? std::nullopt : std::optional<int64_t>(10));
  }
}

TEST_F(KnownArrays, AreMovedAndCombined) {
  const std::string text = R"(HloModule m
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT sum = s32[] add(a, b)
}
ENTRY e {
  a = s32[2,2] constant({{1, 2}, {3, 4}})
  b = s32[2,1] constant({{5}, {6}})
  zero = s32[] constant(0)
  turned = s32[2,2] transpose(a), dimensions={1,0}
  back = s32[2,2] reverse(a), dimensions={1}
  joined = s32[2,3] concatenate(a, b), dimensions={1}
  wide = s32[2,3] pad(b, zero), padding=0_0x1_1
  rows = s32[2] reduce(joined, zero), dimensions={1}, to_apply=add
  running = s32[2] reduce-window(rows, zero), window={size=2 pad=1_0}, to_apply=add
  ROOT all = (s32[2,2], s32[2,2], s32[2,3], s32[2]) tuple(turned, back, wide, running)
})";
  EXPECT_THAT(Of(text, "turned"), Optional(ElementsAre(1, 3, 2, 4)));
  EXPECT_THAT(Of(text, "back"), Optional(ElementsAre(2, 1, 4, 3)));
  EXPECT_THAT(Of(text, "joined"), Optional(ElementsAre(1, 2, 5, 3, 4, 6)));
  EXPECT_THAT(Of(text, "wide"), Optional(ElementsAre(0, 5, 0, 0, 6, 0)));
  EXPECT_THAT(Of(text, "rows"), Optional(ElementsAre(8, 13)));     // 1 + 2 + 5, 3 + 4 + 6
  EXPECT_THAT(Of(text, "running"), Optional(ElementsAre(8, 21)));  // 8, 8 + 13
}

}  // namespace
}  // namespace tpusim::hlo
