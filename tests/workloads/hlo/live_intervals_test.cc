#include "workloads/hlo/analysis/live_intervals.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

class LiveIntervalsTest : public ::testing::Test {
 protected:
  void Read(const std::string& header, const std::string& text) {
    module_ = ParseHloText("HloModule m, is_scheduled=true" + header + "\n" + text).value().module;
    ModuleAliases aliases;
    const auto size = [](const Shape& array) {
      return BufferSize{0, array.IsScalar() ? Bytes(0) : array.ByteSize()};
    };
    lives_ = LiveIntervalsOf(*module_, aliases, size);
  }
  const LiveBuffer& Buffer(const std::string& made_by) const {
    for (const LiveBuffer& b : lives_.buffers) {
      if (b.made_by->name() == made_by) return b;
    }
    ADD_FAILURE() << made_by;
    return lives_.buffers.front();
  }
  // The instructions that begin and end with its life.
  std::pair<std::string, std::string> Life(const std::string& made_by) const {
    const LiveBuffer& b = Buffer(made_by);
    return {lives_.moments[b.begin + 1]->name(), lives_.moments[b.end + 1]->name()};
  }

  std::unique_ptr<Module> module_;
  LiveIntervals lives_;
};

using FromTo = std::pair<std::string, std::string>;

// a is named b, which c reads last. Results live throughout.
TEST_F(LiveIntervalsTest, FromTheMakerToTheLastReader) {
  Read("", R"(ENTRY e {
  x = f32[8,128] parameter(0)
  a = f32[8,128] tanh(x)
  b = f32[1024] bitcast(a)
  c = f32[1024] negate(b)
  d = f32[1024] tanh(c)
  ROOT r = (f32[1024], f32[1024]) tuple(c, d)
})");
  EXPECT_TRUE(Buffer("x").argument);
  EXPECT_EQ(Life("a"), FromTo("a", "c"));
  EXPECT_EQ(Life("c"), FromTo("x", "r"));
  EXPECT_TRUE(Buffer("c").result);
  EXPECT_FALSE(Buffer("a").result);
  // Before everything, behind x, and behind the alloc and the free of a, c and d.
  EXPECT_EQ(lives_.moments.size(), 2U + 2 * 3);
}

// The result has a buffer when the program begins: a, which is over when the result is made, is in
// it, and b, which the result is made of, is not.
TEST_F(LiveIntervalsTest, WhatIsOverBeforeAResultIsMadeLiesInItsBuffer) {
  Read("", R"(ENTRY e {
  x = f32[8,128] parameter(0)
  a = f32[8,128] tanh(x)
  b = f32[4,128] slice(a), slice={[0:4], [0:128]}
  ROOT r = f32[8,128] concatenate(b, b), dimensions={0}
})");
  EXPECT_EQ(Life("r"), FromTo("x", "r"));
  EXPECT_EQ(Buffer("a").inside, &Buffer("r") - lives_.buffers.data());
  EXPECT_EQ(Buffer("b").inside, -1);
}

// Other chips write what a permute makes: it has a place of its own.
TEST_F(LiveIntervalsTest, WhatACollectiveMakesIsInNoResult) {
  Read("", R"(ENTRY e {
  x = f32[8,128] parameter(0)
  a = f32[8,128] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  b = f32[4,128] slice(a), slice={[0:4], [0:128]}
  ROOT r = f32[8,128] concatenate(b, b), dimensions={0}
})");
  EXPECT_EQ(Buffer("a").inside, -1);
  EXPECT_EQ(Life("a"), FromTo("a", "b"));
}

constexpr char kLoop[] = R"(
body {
  t = (f32[8], s32[]) parameter(0)
  x = f32[8] get-tuple-element(t), index=0
  i = s32[] get-tuple-element(t), index=1
  u = f32[8] tanh(x)
  y = f32[8] BODY
  j = s32[] add(i, i)
  ROOT r = (f32[8], s32[]) tuple(y, j)
}
condition {
  t = (f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=1
  ROOT p = pred[] compare(i, i), direction=LT
}
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] negate(p)
  z = s32[] constant(0)
  t = (f32[8], s32[]) tuple(a, z)
  l = (f32[8], s32[]) while(t), condition=condition, body=body
  g = f32[8] get-tuple-element(l), index=0
  ROOT n = f32[4] slice(g), slice={[0:4]}
})";

std::string LoopWith(const std::string& last) {
  std::string text = kLoop;
  return text.replace(text.find("BODY"), 4, last);
}

// y is made when x is read no more: it takes the place of the carried a. What is read element by
// element meanwhile does not matter.
TEST_F(LiveIntervalsTest, ALoopsNextValueTakesThePlaceOfTheLast) {
  for (const char* last : {"negate(u)", "add(u, x)"}) {
    Read("", LoopWith(last));
    ASSERT_GE(Buffer("y").inside, 0) << last;
    EXPECT_EQ(lives_.buffers[Buffer("y").inside].made_by->name(), "a");
    EXPECT_EQ(Life("a"), FromTo("a", "n"));
    EXPECT_EQ(Life("u"), FromTo("u", "y"));
    // Within the loop's moments.
    const int64_t in_loop = lives_.computations.at(module_->entry()).moments[4];
    EXPECT_EQ(in_loop, Buffer("u").begin);
    EXPECT_LT(Buffer("u").end, Buffer("a").end);
  }
}

// A kernel that also adds up what it reads has read a block when it writes that of its result.
TEST_F(LiveIntervalsTest, AKernelWritesOverWhatItAlsoSums) {
  Read("", R"(add {
  v = f32[] parameter(0)
  w = f32[] parameter(1)
  ROOT c = f32[] add(v, w)
}
fused {
  x = f32[8,128] parameter(0)
  y = f32[8,128] tanh(x)
  z = f32[] constant(0)
  s = f32[8] reduce(x, z), dimensions={1}, to_apply=add
  ROOT t = (f32[8,128], f32[8]) tuple(y, s)
}
body {
  t = (f32[8,128], f32[8], s32[]) parameter(0)
  x = f32[8,128] get-tuple-element(t), index=0
  i = s32[] get-tuple-element(t), index=2
  k = (f32[8,128], f32[8]) fusion(x), kind=kLoop, calls=fused
  y = f32[8,128] get-tuple-element(k), index=0
  s = f32[8] get-tuple-element(k), index=1
  j = s32[] add(i, i)
  ROOT r = (f32[8,128], f32[8], s32[]) tuple(y, s, j)
}
condition {
  t = (f32[8,128], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=2
  ROOT p = pred[] compare(i, i), direction=LT
}
ENTRY e {
  p = f32[8,128] parameter(0)
  q = f32[8] parameter(1)
  a = f32[8,128] negate(p)
  b = f32[8] negate(q)
  z = s32[] constant(0)
  t = (f32[8,128], f32[8], s32[]) tuple(a, b, z)
  l = (f32[8,128], f32[8], s32[]) while(t), condition=condition, body=body
  g = f32[8,128] get-tuple-element(l), index=0
  ROOT n = f32[8,128] negate(g)
})");
  ASSERT_GE(Buffer("k").inside, 0);
  EXPECT_EQ(lives_.buffers[Buffer("k").inside].made_by->name(), "a");
}

TEST_F(LiveIntervalsTest, WhatIsTurnedAroundIsMadeElsewhere) {
  Read("", LoopWith("reverse(x), dimensions={0}"));
  EXPECT_EQ(Buffer("y").inside, -1);
  EXPECT_EQ(Life("y"), FromTo("y", "r"));
}

TEST_F(LiveIntervalsTest, AResultTakesThePlaceOfADonatedArgument) {
  const std::string text = R"(ENTRY e {
  x = f32[8] parameter(0)
  a = f32[8] tanh(x)
  b = f32[8] negate(a)
  c = f32[8] LAST
  ROOT r = (f32[8], f32[8]) tuple(b, c)
})";
  const auto with = [&](const std::string& last) {
    std::string whole = text;
    Read(", input_output_alias={ {0}: (0, {}, may-alias) }",
         whole.replace(whole.find("LAST"), 4, last));
  };
  with("negate(a)");
  ASSERT_EQ(Buffer("b").inside, 0);
  EXPECT_FALSE(Buffer("b").result);
  EXPECT_TRUE(Buffer("c").result);
  // x is read behind b.
  with("negate(x)");
  EXPECT_EQ(Buffer("b").inside, -1);
  EXPECT_TRUE(Buffer("b").result);
}

TEST_F(LiveIntervalsTest, UsesAreWhatReadsAndWrites) {
  Read("", R"(ENTRY e {
  x = f32[8,128] parameter(0)
  r = f32[1,128] parameter(1)
  z = s32[] constant(0)
  a = f32[8,128] negate(x)
  b = f32[8,128] bitcast(a)
  ROOT u = f32[8,128] dynamic-update-slice(b, r, z, z)
})");
  std::vector<std::string> uses;
  for (const BufferUse& use : lives_.uses) {
    if (lives_.buffers[use.buffer].made_by->name() != "a") continue;
    uses.push_back(use.by->name() + (use.writes ? " writes" : " reads"));
  }
  EXPECT_EQ(uses, (std::vector<std::string>{"a writes", "u writes"}));
}

// The TPU compiler has put b where a was, and d not where c is, which s reads.
TEST_F(LiveIntervalsTest, StatedPlaces) {
  Read("", R"(ENTRY e {
  x = f32[8,128] parameter(0)
  a = f32[8,128] tanh(x)
  b = f32[8,128] add(x, a), backend_config={"aliasing_operands":{"lists":[{"indices":["1","2"]}]}}
  c = f32[8,128] tanh(b)
  d = f32[8,128] negate(c), backend_config={"aliasing_operands":{"lists":[{"indices":["0","1"]}]}}
  s = f32[8,128] add(c, d)
  ROOT r = f32[4,128] slice(s), slice={[0:4], [0:128]}
})");
  EXPECT_EQ(Life("a"), FromTo("a", "c"));
  EXPECT_EQ(Buffer("b").inside, &Buffer("a") - lives_.buffers.data());
  EXPECT_EQ(Life("c"), FromTo("c", "s"));
  EXPECT_EQ(Buffer("d").inside, -1);
}

// Two kernels change what a loop carries, one after the other.
TEST_F(LiveIntervalsTest, StatedPlacesInLoops) {
  Read("", R"(body {
  p = (f32[8,128], f32[8,128]) parameter(0)
  i = f32[8,128] get-tuple-element(p), index=0
  s = f32[8,128] get-tuple-element(p), index=1
  a = f32[8,128] maximum(i, s), backend_config={"aliasing_operands":{"lists":[{"indices":["1","2"]}]}}
  b = f32[8,128] maximum(i, a), backend_config={"aliasing_operands":{"lists":[{"indices":["1","2"]}]}}
  ROOT t = (f32[8,128], f32[8,128]) tuple(i, b)
}
condition {
  q = (f32[8,128], f32[8,128]) parameter(0)
  ROOT c = pred[] constant(true)
}
ENTRY e {
  x = f32[8,128] parameter(0)
  y = f32[8,128] tanh(x)
  v = (f32[8,128], f32[8,128]) tuple(x, y)
  ROOT w = (f32[8,128], f32[8,128]) while(v), condition=condition, body=body
})");
  EXPECT_EQ(Buffer("a").inside, &Buffer("y") - lives_.buffers.data());
  EXPECT_EQ(Buffer("b").inside, &Buffer("y") - lives_.buffers.data());
}

}  // namespace
}  // namespace tpusim::hlo
