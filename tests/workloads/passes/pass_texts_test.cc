// Every pass of the table on a small module, text in and text out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/workloads/passes/pass_test.h"
#include "workloads/passes/passes.h"

namespace tpusim::passes {
namespace {

TEST(PassTexts, Simplify) {
  PassText test(R"(HloModule m
ENTRY e {
  p = f32[8,16] parameter(0)
  same = f32[8,16] reshape(p)
  a = f32[16,8] transpose(same), dimensions={1,0}
  b = f32[16,8] transpose(p), dimensions={1,0}
  unused = f32[8,16] negate(p)
  pair = (f32[16,8], f32[16,8]) tuple(a, b)
  first = f32[16,8] get-tuple-element(pair), index=0
  ROOT sum = f32[16,8] add(first, b)
})");
  EXPECT_TRUE(test.Run("simplify").value());
  EXPECT_EQ(test.text(), Canonical(R"(HloModule m
ENTRY e {
  p = f32[8,16] parameter(0)
  a = f32[16,8] transpose(p), dimensions={1,0}
  ROOT sum = f32[16,8] add(a, a)
})"));
  EXPECT_FALSE(test.Run("simplify").value());
}

TEST(PassTexts, SimplifyComparesWhereAScatterHitsOneElementOfEveryRow) {
  const auto module = [](const char* indices) {
    return fmt::format(R"(HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}}
ENTRY e {{
  zero = f32[] constant(0)
  zeros = f32[16,1000] broadcast(zero), dimensions={{}}
  labels = s32[16,{0}] parameter(0)
  ones = f32[16,{0}] parameter(1)
  ROOT picked = f32[16,1000] scatter(zeros, labels, ones), update_window_dims={{}}, inserted_window_dims={{1}}, scatter_dims_to_operand_dims={{1}}, input_batching_dims={{0}}, scatter_indices_batching_dims={{0}}, index_vector_dim=2, to_apply=add
}})",
                       indices);
  };
  PassText one(module("1"));
  EXPECT_TRUE(one.Run("simplify").value());
  EXPECT_TRUE(HasLines(one.text(), R"(
    s32[16,1000]{1,0} iota(), iota_dimension=1
    pred[16,1000]{1,0} compare(
    f32[16,1000]{1,0} select(
  )")) << one.text();
  // Two in a row may hit the same.
  PassText two(module("2"));
  two.Run("simplify").value();
  EXPECT_TRUE(HasLines(two.text(), "scatter(")) << two.text();
}

TEST(PassTexts, HoistInvariants) {
  PassText test(R"(HloModule m
body {
  p = (s32[], f32[8,128], f32[8,128]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  sum = f32[8,128] get-tuple-element(p), index=1
  x = f32[8,128] get-tuple-element(p), index=2
  same = f32[8,128] cosine(x)
  more = f32[8,128] add(sum, same)
  ROOT r = (s32[], f32[8,128], f32[8,128]) tuple(next, more, x)
}
condition {
  p = (s32[], f32[8,128], f32[8,128]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant(4)
  ROOT less = pred[] compare(n, most), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  a = f32[8,128] parameter(0)
  b = f32[8,128] parameter(1)
  init = (s32[], f32[8,128], f32[8,128]) tuple(zero, a, b)
  loop = (s32[], f32[8,128], f32[8,128]) while(init), condition=condition, body=body
  ROOT r = f32[8,128] get-tuple-element(loop), index=1
})");
  EXPECT_TRUE(test.Run("hoist-invariants").value());
  EXPECT_EQ(test.text(), Canonical(R"(HloModule m
body {
  p = (s32[], f32[8,128], f32[8,128]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  sum = f32[8,128] get-tuple-element(p), index=1
  same = f32[8,128] get-tuple-element(p), index=2
  more = f32[8,128] add(sum, same)
  ROOT r = (s32[], f32[8,128], f32[8,128]) tuple(next, more, same)
}
condition {
  p = (s32[], f32[8,128], f32[8,128]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant(4)
  ROOT less = pred[] compare(n, most), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  a = f32[8,128] parameter(0)
  b = f32[8,128] parameter(1)
  same = f32[8,128] cosine(b)
  init = (s32[], f32[8,128], f32[8,128]) tuple(zero, a, same)
  loop = (s32[], f32[8,128], f32[8,128]) while(init), condition=condition, body=body
  ROOT r = f32[8,128] get-tuple-element(loop), index=1
})"));
  EXPECT_FALSE(test.Run("hoist-invariants").value());
}

TEST(PassTexts, StacksAreNarrowBeforeTheLoopThatSlicesThem) {
  const auto module = [](const std::string& trips) {
    return R"(HloModule m
body {
  p = (s32[], bf16[8,128], f32[4,8,128]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  sum = bf16[8,128] get-tuple-element(p), index=1
  stack = f32[4,8,128] get-tuple-element(p), index=2
  slice = f32[1,8,128] dynamic-slice(stack, n, zero, zero), dynamic_slice_sizes={1,8,128}
  flat = f32[8,128] reshape(slice)
  narrow = bf16[8,128] convert(flat)
  more = bf16[8,128] add(sum, narrow)
  ROOT r = (s32[], bf16[8,128], f32[4,8,128]) tuple(next, more, stack)
}
condition {
  p = (s32[], bf16[8,128], f32[4,8,128]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant()" +
           trips +
           R"()
  ROOT less = pred[] compare(n, most), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  a = bf16[8,128] parameter(0)
  b = f32[4,8,128] parameter(1)
  init = (s32[], bf16[8,128], f32[4,8,128]) tuple(zero, a, b)
  loop = (s32[], bf16[8,128], f32[4,8,128]) while(init), condition=condition, body=body
  ROOT r = bf16[8,128] get-tuple-element(loop), index=1
})";
  };
  PassText all(module("4"));
  EXPECT_TRUE(all.Run("hoist-invariants").value());
  EXPECT_TRUE(HasLines(all.text(), R"(
    bf16[4,8,128]{2,1,0} get-tuple-element(
    bf16[1,8,128]{2,1,0} dynamic-slice(
    bf16[8,128]{1,0} reshape(
    ENTRY
    bf16[4,8,128]{2,1,0} convert()"))
      << all.text();
  // Three of four slices are less than the stack.
  PassText some(module("3"));
  EXPECT_FALSE(some.Run("hoist-invariants").value()) << some.text();
}

TEST(PassTexts, Layout) {
  // Rows are regrouped without splitting a tile of 8 x 128; the second splits them.
  PassText test(R"(HloModule m
ENTRY e {
  p = f32[4,16,128] parameter(0)
  free = f32[64,128] reshape(p)
  moves = f32[128,64] reshape(free)
  ROOT r = (f32[64,128], f32[128,64]) tuple(free, moves)
})");
  EXPECT_TRUE(test.Run("layout").value());
  EXPECT_TRUE(HasLines(test.text(), R"(
    f32[64,128]{1,0} bitcast(
    f32[128,64]{0,1} reshape(
  )")) << test.text();
}

TEST(PassTexts, LayoutKeepsThatOfAConvolutionOverANorm) {
  // Rows of 112 would be padded less than 64 features, were the four wide arrays of the norm kept;
  // they are made again where they are used, and turning what goes in and out costs more.
  PassText test(R"(HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = bf16[16,112,112,64] parameter(0)
  w = bf16[3,3,64,64] parameter(1)
  none = f32[] constant(0)
  conv = bf16[16,112,112,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  wide = f32[16,112,112,64] convert(conv)
  sums = f32[64] reduce(wide, none), dimensions={0,1,2}, to_apply=sum
  square = f32[16,112,112,64] multiply(wide, wide)
  squares = f32[64] reduce(square, none), dimensions={0,1,2}, to_apply=sum
  mean = f32[16,112,112,64] broadcast(sums), dimensions={3}
  centered = f32[16,112,112,64] subtract(wide, mean)
  scale = f32[16,112,112,64] broadcast(squares), dimensions={3}
  scaled = f32[16,112,112,64] multiply(centered, scale)
  both = f32[16,112,112,64] add(scaled, centered)
  narrow = bf16[16,112,112,64] convert(both)
  ROOT next = bf16[16,112,112,64] convolution(narrow, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
})");
  EXPECT_TRUE(test.Run("layout").value());
  EXPECT_TRUE(HasLines(test.text(), R"(
    bf16[16,112,112,64]{3,0,2,1} convolution(
    f32[16,112,112,64]{3,0,2,1} convert(
    bf16[16,112,112,64]{3,0,2,1} convert(
  )")) << test.text();
}

constexpr std::string_view kAccumulate = R"(HloModule m
body {
  p = (s32[], f32[8,128]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  sum = f32[8,128] get-tuple-element(p), index=1
  more = f32[8,128] cosine(sum)
  ROOT r = (s32[], f32[8,128]) tuple(next, more)
}
condition {
  p = (s32[], f32[8,128]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant(4)
  ROOT less = pred[] compare(n, most), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  none = f32[] constant(0)
  start = f32[8,128] broadcast(none), dimensions={}
  init = (s32[], f32[8,128]) tuple(zero, start)
  ROOT loop = (s32[], f32[8,128]) while(init), condition=condition, body=body
})";

TEST(PassTexts, SinkInitializers) {
  PassText test(kAccumulate);
  EXPECT_TRUE(test.Run("sink-initializers").value());
  EXPECT_TRUE(HasLines(test.text(), R"(
    pred[] compare(*direction=EQ
    f32[8,128]{1,0} select(
    f32[8,128]{1,0} cosine(%select)
    ENTRY
    custom-call(), custom_call_target="AllocateBuffer"
  )")) << test.text();
  EXPECT_FALSE(test.Run("sink-initializers").value());
}

TEST(PassTexts, Fuse) {
  PassText test(R"(HloModule m
ENTRY e {
  p = f32[256,512] parameter(0)
  t = f32[256,512] tanh(p)
  ROOT y = f32[256,512] multiply(t, p)
})");
  EXPECT_TRUE(test.Run("fusion").value());
  EXPECT_EQ(test.text(), Canonical(R"(HloModule m
fused {
  p = f32[256,512] parameter(0)
  t = f32[256,512] tanh(p)
  ROOT y = f32[256,512] multiply(t, p)
}
ENTRY e {
  p = f32[256,512] parameter(0)
  ROOT f = f32[256,512] fusion(p), kind=kLoop, calls=fused
})"));
}

TEST(PassTexts, FuseTurnsLanesBeforeAConvolution) {
  // The batch goes to the rows on the way in; lanes would be turned again in every window.
  const auto fused = [](std::string_view from) {
    PassText test(fmt::format(R"(HloModule m
ENTRY e {{
  x = bf16[32,28,28,128]{{{}}} parameter(0)
  w = bf16[3,3,128,128] parameter(1)
  moved = bf16[32,28,28,128]{{3,0,2,1}} copy(x)
  ROOT y = bf16[32,28,28,128]{{3,0,2,1}} convolution(moved, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
}})",
                              from));
    EXPECT_TRUE(test.Run("fusion").ok());
    return HasLines(test.text(), R"(
      ENTRY
      fusion(
    )");
  };
  EXPECT_TRUE(fused("3,2,1,0"));
  EXPECT_FALSE(fused("2,3,1,0"));
}

TEST(PassTexts, Copies) {
  PassText test(R"(HloModule m, input_output_alias={ {1}: (1, {}, may-alias) }
ENTRY e {
  kept = f32[8,128] parameter(0)
  given = f32[8,128] parameter(1)
  ROOT r = (f32[8,128], f32[8,128]) tuple(kept, given)
})");
  EXPECT_TRUE(test.Run("copies").value());
  EXPECT_EQ(test.text(), Canonical(R"(HloModule m, input_output_alias={ {1}: (1, {}, may-alias) }
ENTRY e {
  kept = f32[8,128] parameter(0)
  given = f32[8,128] parameter(1)
  copy = f32[8,128] copy(kept)
  ROOT r = (f32[8,128], f32[8,128]) tuple(copy, given)
})"));
}

constexpr std::string_view kPermute = R"(HloModule m
ENTRY e {
  p = f32[256,512] parameter(0)
  t = f32[256,512] tanh(p)
  moved = f32[256,512] collective-permute(p), source_target_pairs={{0,1},{1,0}}
  ROOT sum = f32[256,512] add(t, moved)
})";

TEST(PassTexts, AsyncCollectives) {
  PassText test(kPermute);
  EXPECT_FALSE(test.Run("async-collectives{permutes=off}").value());
  EXPECT_TRUE(test.Run("async-collectives").value());
  EXPECT_EQ(test.text(), Canonical(R"(HloModule m
ENTRY e {
  p = f32[256,512] parameter(0)
  t = f32[256,512] tanh(p)
  s = (f32[256,512], f32[256,512], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1},{1,0}}
  moved = f32[256,512] collective-permute-done(s)
  ROOT sum = f32[256,512] add(t, moved)
})"));
}

// The TPU compiler has asynchronous all-gathers on v5e and none on v5p and v6e.
TEST(PassTexts, AsyncCollectivesKeepAllGathersWhereTheChipHasNoneInFlight) {
  constexpr std::string_view kGather = R"(HloModule m
ENTRY e {
  p = f32[64,512] parameter(0)
  ROOT g = f32[256,512] all-gather(p), dimensions={0}, replica_groups={{0,1,2,3}}
})";
  for (const char* slice : {"v6e-2x2", "v5p-2x2x1", "v4-2x2x1"}) {
    PassText synchronous(kGather, slice);
    EXPECT_FALSE(synchronous.Run("async-collectives").value()) << slice;
  }
  PassText asynchronous(kGather, "v5e-2x2");
  EXPECT_TRUE(asynchronous.Run("async-collectives").value());
}

// Nothing carries the first of two gathers; a product runs beside the second.
TEST(PassTexts, DemoteAsyncLeavesPairsThatAreCovered) {
  PassText test(R"(HloModule m, is_scheduled=true
ENTRY e {
  p = f32[64,512] parameter(0)
  w = f32[512,512] parameter(1)
  s0 = (f32[64,512], f32[256,512]) all-gather-start(p), dimensions={0}, replica_groups={{0,1,2,3}}
  t = f32[64,512] tanh(p)
  g0 = f32[256,512] all-gather-done(s0)
  s1 = (f32[64,512], f32[256,512]) all-gather-start(t), dimensions={0}, replica_groups={{0,1,2,3}}
  d = f32[256,512] dot(g0, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g1 = f32[256,512] all-gather-done(s1)
  ROOT sum = f32[256,512] add(d, g1)
})");
  EXPECT_TRUE(test.Run("demote-async").value());
  EXPECT_FALSE(test.Run("demote-async").value());
  EXPECT_EQ(test.text(), Canonical(R"(HloModule m, is_scheduled=true
ENTRY e {
  p = f32[64,512] parameter(0)
  w = f32[512,512] parameter(1)
  t = f32[64,512] tanh(p)
  g0 = f32[256,512] all-gather(p), dimensions={0}, replica_groups={{0,1,2,3}}, frontend_attributes={async_collective_name="s0"}
  s1 = (f32[64,512], f32[256,512]) all-gather-start(t), dimensions={0}, replica_groups={{0,1,2,3}}
  d = f32[256,512] dot(g0, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g1 = f32[256,512] all-gather-done(s1)
  ROOT sum = f32[256,512] add(d, g1)
})"));
}

TEST(PassTexts, Schedule) {
  PassText test(kPermute);
  test.costs().main = [](const hlo::Instruction& i) {
    return i.opcode() == hlo::Opcode::kTanh ? 100 : 0;
  };
  test.costs().transfer = [](const hlo::Instruction&) { return 100; };
  EXPECT_TRUE(test.Run("async-collectives,schedule").value());
  EXPECT_TRUE(HasLines(test.text(), R"(
    HloModule m, is_scheduled=true
    collective-permute-start(
    tanh(
    collective-permute-done(
    ROOT
  )")) << test.text();
  EXPECT_FALSE(test.Run("schedule").value());
}

TEST(PassTexts, MemorySpaceAssignment) {
  PassText test(R"(HloModule m, is_scheduled=true
ENTRY e {
  p = f32[256,512] parameter(0)
  t = f32[256,512] tanh(p)
  ROOT y = f32[256,512] negate(t)
})",
                "v4-2x2x1");
  EXPECT_TRUE(test.Run("memory-space-assignment").value());
  EXPECT_EQ(test.text(), Canonical(R"(HloModule m, is_scheduled=true
ENTRY e {
  p = f32[256,512] parameter(0)
  t = f32[256,512]{1,0:S(3)} tanh(p)
  ROOT y = f32[256,512] negate(t)
})"));
}

TEST(CanonicalText, NamesAndOrderPlayNoPart) {
  EXPECT_EQ(Canonical(R"(HloModule a
ENTRY e {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  p = f32[] negate(x)
  q = f32[] abs(y)
  ROOT r = f32[] add(p, q)
})"),
            Canonical(R"(HloModule b
ENTRY f {
  y.1 = f32[] parameter(1)
  q.1 = f32[] abs(y.1), metadata={op_name="abs"}
  x.1 = f32[] parameter(0)
  p.1 = f32[] negate(x.1)
  ROOT r.1 = f32[] add(p.1, q.1)
})"));
}

TEST(HasLines, FindsThemInOrder) {
  EXPECT_TRUE(HasLines("a [1]\n b\nc", "a [1]\nc"));
  EXPECT_FALSE(HasLines("a\nb", "b\na"));
  EXPECT_TRUE(HasLines("x = add(y), to=z", "x*to=z"));
}

// From the placement on, through names; a slice for the device is what moves.
TEST(PassTexts, MemorySpaces) {
  const auto text = [](const std::string& host, const std::string& back) {
    return R"(HloModule m
ENTRY e {
  x = f32[64,512] parameter(0)
  there = f32[64,512]{1,0)" +
           host + R"(} custom-call(x), custom_call_target="MoveToHost"
  both = (f32[64,512]{1,0)" +
           host + R"(}, f32[64,512]) tuple(there, x)
  held = (f32[64,512]{1,0)" +
           host + R"(}, f32[64,512]) opt-barrier(both)
  same = f32[64,512]{1,0)" +
           host + R"(} get-tuple-element(held), index=0
  part = f32[8,512] slice(same), slice={[0:8], [0:512]}
)" + back;
  };
  PassText test(text("", R"(  back = f32[8,512] custom-call(part), custom_call_target="MoveToDevice"
  ROOT r = f32[8,512] negate(back)
})"));
  EXPECT_TRUE(test.Run("memory-spaces").value());
  EXPECT_EQ(test.text(), Canonical(text(":S(5)", "  ROOT r = f32[8,512] negate(part)\n}")));
  EXPECT_FALSE(test.Run("memory-spaces").value());
}

}  // namespace
}  // namespace tpusim::passes
