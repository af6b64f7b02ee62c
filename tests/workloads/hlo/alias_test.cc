#include "workloads/hlo/analysis/alias.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AliasTest : public ::testing::Test {
 protected:
  void Read(const std::string& text) {
    module_ = ParseHloText("HloModule m\n" + text).value().module;
    aliases_ = std::make_unique<AliasAnalysis>(*module_->entry());
  }
  const Instruction* Get(const std::string& name) const {
    for (const Instruction* i : module_->entry()->instructions()) {
      if (i->name() == name) return i;
    }
    ADD_FAILURE() << name;
    return nullptr;
  }
  // Returns the instruction that makes the array, found by names alone.
  std::string MadeBy(const std::string& name) const { return aliases_->Of(Get(name))->name(); }
  // Returns the owners of the buffers of its arrays; "-": a flag.
  std::vector<std::string> Owners(const std::string& name) const {
    std::vector<std::string> owners;
    for (const int32_t a : aliases_->ArraysOf(Get(name))) {
      owners.push_back(a == kNoArray ? "-"
                                     : aliases_->arrays()[aliases_->OwnerOf(a)].made_by->name());
    }
    return owners;
  }
  std::vector<std::string> Readers(const std::string& name) const {
    std::vector<std::string> readers;
    for (const Instruction* i : aliases_->ReadersOf(Get(name))) readers.push_back(i->name());
    return readers;
  }

  std::unique_ptr<Module> module_;
  std::unique_ptr<AliasAnalysis> aliases_;
};

TEST_F(AliasTest, NamesAreTheArray) {
  Read(R"(ENTRY e {
  x = f32[8,128] parameter(0)
  a = f32[8,128] tanh(x)
  t = (f32[8,128], f32[8,128]) tuple(a, x)
  o = (f32[8,128], f32[8,128]) opt-barrier(t)
  g = f32[8,128] get-tuple-element(o), index=0
  b = f32[1024] bitcast(g)
  c = f32[1024] negate(b)
  ROOT r = (f32[1024], f32[1024]) tuple(c, b)
})");
  EXPECT_EQ(MadeBy("b"), "a");
  EXPECT_THAT(Owners("o"), ElementsAre("a", "x"));
  // Tuples, barriers and bitcasts read nothing.
  EXPECT_THAT(Readers("b"), ElementsAre("c"));
  EXPECT_THAT(Readers("x"), ElementsAre("a"));
  EXPECT_TRUE(aliases_->LivesOut(Get("a")));
  EXPECT_FALSE(aliases_->LivesOut(Get("x")));
}

// Element 0 is forwarded, so the loop's is the initial one; elements 1 and 2 change, in the places
// of the initial ones.
TEST_F(AliasTest, LoopsRunInTheBuffersOfWhatTheyStartFrom) {
  Read(R"(
body {
  t = (f32[8], f32[8], s32[]) parameter(0)
  w = f32[8] get-tuple-element(t), index=0
  x = f32[8] get-tuple-element(t), index=1
  i = s32[] get-tuple-element(t), index=2
  y = f32[8] add(w, x)
  j = s32[] add(i, i)
  ROOT r = (f32[8], f32[8], s32[]) tuple(w, y, j)
}
condition {
  t = (f32[8], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=2
  ROOT less = pred[] compare(i, i), direction=LT
}
ENTRY e {
  k = f32[8] parameter(0)
  p = f32[8] parameter(1)
  a = f32[8] negate(p)
  z = s32[] constant(0)
  t = (f32[8], f32[8], s32[]) tuple(k, a, z)
  l = (f32[8], f32[8], s32[]) while(t), condition=condition, body=body
  u = f32[8] get-tuple-element(l), index=0
  v = f32[8] get-tuple-element(l), index=1
  ROOT s = f32[8] add(u, v)
})");
  EXPECT_THAT(Owners("l"), ElementsAre("k", "a", "z"));
  EXPECT_EQ(MadeBy("u"), "k");
  EXPECT_EQ(MadeBy("v"), "v");  // what the loop makes has its first name
  EXPECT_THAT(Readers("k"), ElementsAre("l", "s"));
  EXPECT_THAT(Readers("a"), ElementsAre("l"));
  EXPECT_THAT(Readers("v"), ElementsAre("s"));
}

TEST_F(AliasTest, UpdatesInPlaceTakeTheBuffer) {
  Read(R"(ENTRY e {
  x = f32[8,128] parameter(0)
  r = f32[1,128] parameter(1)
  z = s32[] constant(0)
  a = f32[8,128] negate(x)
  u = f32[8,128] dynamic-update-slice(a, r, z, z)
  ROOT v = f32[8,128] dynamic-update-slice(u, r, z, z)
})");
  EXPECT_EQ(MadeBy("v"), "v");
  EXPECT_THAT(Owners("v"), ElementsAre("a"));
  EXPECT_THAT(Readers("a"), ElementsAre("u"));
  EXPECT_FALSE(aliases_->LivesOut(Get("a")));
  EXPECT_TRUE(aliases_->LivesOut(Get("v")));
}

// The start writes the result and reads the operand until the done.
TEST_F(AliasTest, StartsMakeWhatDonesHandOut) {
  Read(R"(ENTRY e {
  x = f32[8] parameter(0)
  a = f32[8] negate(x)
  s = (f32[8], f32[8], u32[], u32[]) collective-permute-start(a), source_target_pairs={{0,1},{1,0}}
  b = f32[8] tanh(x)
  d = f32[8] collective-permute-done(s)
  ROOT r = f32[8] add(b, d)
})");
  EXPECT_THAT(Owners("s"), ElementsAre("a", "s", "-", "-"));
  EXPECT_THAT(Owners("d"), ElementsAre("s"));
  EXPECT_EQ(MadeBy("d"), "d");
  EXPECT_THAT(Readers("a"), ElementsAre("s", "d"));
  EXPECT_THAT(Readers("d"), ElementsAre("r"));
}

// Results that nothing takes out of their tuple have buffers all the same.
TEST_F(AliasTest, ATupleThatIsNotTakenApart) {
  Read(R"(
order {
  p = f32[] parameter(0)  q = f32[] parameter(1)  r = s32[] parameter(2)  s = s32[] parameter(3)
  ROOT l = pred[] compare(p, q), direction=LT
}
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[8] parameter(1)
  k = (f32[8], s32[8]) sort(x, i), dimensions={0}, to_apply=order
  g = s32[8] get-tuple-element(k), index=1
  h = s32[8] get-tuple-element(k), index=1
  ROOT n = s32[8] negate(h)
})");
  EXPECT_EQ(MadeBy("h"), "g");  // the same element once more
  EXPECT_THAT(Owners("k"), ElementsAre("k", "k"));
  const AliasAnalysis::ArrayRange made = aliases_->MadeBy(Get("k"));
  ASSERT_EQ(made.last - made.first, 2);
  EXPECT_EQ(aliases_->arrays()[made.first].name, nullptr);
  EXPECT_THAT(aliases_->arrays()[made.first].readers, IsEmpty());
  EXPECT_EQ(aliases_->arrays()[made.first + 1].name, Get("g"));
}

}  // namespace
}  // namespace tpusim::hlo
