#include "sim/results/report/rollup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/results/report/report.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::ElementsAre;

// "name time" in microseconds.
std::vector<std::string> Texts(const std::vector<RollupRow>& rows) {
  std::vector<std::string> texts;
  for (const RollupRow& r : rows) {
    texts.push_back(r.name + " " + std::to_string(r.time.value() / 1'000'000));
  }
  return texts;
}

std::vector<std::string> Texts(const std::vector<RollupLine>& lines) {
  std::vector<RollupRow> rows;
  for (const RollupLine& line : lines) rows.push_back(line.row);
  return Texts(rows);
}

Rollups SampleRollups() {
  const Sample s = MakeSample();
  return RollUp(s.info, s.timeline);
}

TEST(RollupTest, OperationsOfTheMainStream) {
  const Rollups r = SampleRollups();
  EXPECT_THAT(Texts(r.Of(RollupBy::kOp)),
              ElementsAre("fusion.3 70", "all-gather.1 20", "loop_fusion.5 8", "while.2 2"));
  const RollupRow& gather = r.Of(RollupBy::kOp)[1];
  EXPECT_EQ(gather.category, "exposed all-gather");
  EXPECT_EQ(gather.exposed, Microseconds(20));
  EXPECT_EQ(gather.compute, Picoseconds(0));
  EXPECT_EQ(r.Of(RollupBy::kOp)[0].compute, Microseconds(70));
}

TEST(RollupTest, OtherTables) {
  const Rollups r = SampleRollups();
  EXPECT_THAT(
      Texts(r.Of(RollupBy::kCategory)),
      ElementsAre("convolution fusion 70", "exposed all-gather 20", "loop fusion 8", "while 2"));
  EXPECT_THAT(Texts(r.Of(RollupBy::kXprof)),
              ElementsAre("convolution fusion 70", "all-gather 20", "loop fusion 8", "while 2"));
  EXPECT_THAT(Texts(r.Of(RollupBy::kSource)),
              ElementsAre("f.py:12 70", "f.py:10 20", "f.py:14 8", "f.py:11 2"));
  // The permute hides altogether, and is told all the same.
  EXPECT_THAT(Texts(r.Of(RollupBy::kCollective)),
              ElementsAre("(no collective) 80", "all-gather 20", "collective-permute 0"));
  EXPECT_EQ(r.Of(RollupBy::kCollective)[2].hidden, Microseconds(60));
}

// The gather and the loop are in jit(f)/layer itself.
TEST(RollupTest, ScopesAreATree) {
  const std::vector<RollupRow> scopes = SampleRollups().Of(RollupBy::kScope);
  EXPECT_THAT(Texts(scopes), ElementsAre("jit(f) 0", "jit(f)/layer 22", "jit(f)/layer/while 0",
                                         "jit(f)/layer/while/body 70", "jit(f)/loss 8"));
  EXPECT_EQ(scopes[0].total, Microseconds(100));
  EXPECT_EQ(scopes[1].total, Microseconds(92));
}

TEST(RollupTest, TheLongestScopesAreOpened) {
  const std::vector<RollupRow> scopes = SampleRollups().Of(RollupBy::kScope);
  // One scope alone is never all there is to say.
  EXPECT_THAT(Texts(TopLines(scopes, RollupBy::kScope, 1)), ElementsAre("jit(f) 100"));
  EXPECT_THAT(Texts(TopLines(scopes, RollupBy::kScope, 2)),
              ElementsAre("jit(f)/layer 92", "jit(f)/loss 8"));
  EXPECT_THAT(Texts(TopLines(scopes, RollupBy::kScope, 3)),
              ElementsAre("jit(f)/layer/while/body 70", "jit(f)/layer/(rest) 22", "jit(f)/loss 8"));
}

TEST(RollupTest, WhatIsNotToldIsIdle) {
  Sample s = MakeSample();
  s.timeline.ops[kWhile].main = Picoseconds(0);
  const Rollups r = RollUp(s.info, s.timeline);
  for (const RollupBy by : kRollups) {
    Picoseconds sum{0};
    for (const RollupRow& row : r.Of(by)) {
      sum += row.time;
      if (row.name == kIdle) {
        EXPECT_EQ(row.time, Microseconds(2));
      }
    }
    EXPECT_EQ(sum, Microseconds(100)) << RollupName(by);
  }
}

// The wait of a done is that for its collective: 100 = 80 + 20 again.
TEST(RollupTest, DonesWaitForTheirTransfers) {
  Sample s = MakeSample();
  isa::OpInfo done;
  done.name = "collective-permute-done.4";
  done.waits_for = kPermute;
  s.info.ops.push_back(done);
  done.name = "copy-done.4";
  done.waits_for = static_cast<int32_t>(s.info.ops.size() + 1);
  s.info.ops.push_back(done);
  isa::OpInfo copy;
  copy.category = "copy to host";
  copy.is_async = true;
  s.info.ops.push_back(copy);
  s.timeline.ops.resize(8);
  s.timeline.step_time = Microseconds(110);
  s.timeline.ops[5].count = s.timeline.ops[6].count = 1;
  s.timeline.ops[5].main = Microseconds(6);
  s.timeline.ops[6].main = Microseconds(4);
  const Rollups r = RollUp(s.info, s.timeline);
  EXPECT_THAT(Texts(r.Of(RollupBy::kCategory)),
              ElementsAre("convolution fusion 70", "exposed all-gather 20", "loop fusion 8",
                          "exposed collective-permute 6", "exposed copy to host 4", "while 2"));
  EXPECT_THAT(Texts(r.Of(RollupBy::kCollective)),
              ElementsAre("(no collective) 84", "all-gather 20", "collective-permute 6"));
}

// Two layers of two operations each; the last one is in one layer only.
TEST(RollupTest, UnrolledLayersAreOne) {
  Sample s = MakeSample();
  s.info.ops.clear();
  const auto add = [&](const char* name, const char* scope, int64_t us) {
    isa::OpInfo op;
    op.name = name;
    op.category = "loop fusion";
    op.scope = scope;
    op.source = "f.py:1";
    s.info.ops.push_back(op);
    s.timeline.ops.emplace_back();
    s.timeline.ops.back().count = 1;
    s.timeline.ops.back().main = Microseconds(us);
  };
  s.timeline.ops.clear();
  s.timeline.kinds.clear();
  add("fusion.1", "jit(f)/layers_0/up/mul", 10);
  add("fusion.2", "jit(f)/layers_0/down/mul", 20);
  add("fusion.3", "jit(f)/layers_1/up/mul", 30);
  add("fusion.4", "jit(f)/layers_1/down/mul", 35);
  add("fusion.5", "jit(f)/layers_1/norm/mul", 5);
  const Rollups r = RollUp(s.info, s.timeline);
  EXPECT_THAT(Texts(r.Of(RollupBy::kOp)), ElementsAre("fusion.* 55", "fusion.* 40", "fusion.5 5"));
  EXPECT_EQ(r.Of(RollupBy::kOp)[0].members, 2);
  EXPECT_EQ(r.Of(RollupBy::kOp)[0].count, 2);
  EXPECT_THAT(Texts(r.Of(RollupBy::kScope)),
              ElementsAre("jit(f) 0", "jit(f)/layers_* 0", "jit(f)/layers_*/down 55",
                          "jit(f)/layers_*/up 40", "jit(f)/layers_1/norm 5"));
  EXPECT_EQ(r.Of(RollupBy::kScope)[1].members, 2);
  // The scope in one layer only is inside of the pattern, too.
  EXPECT_THAT(Texts(TopLines(r.Of(RollupBy::kScope), RollupBy::kScope, 1)),
              ElementsAre("jit(f)/layers_* 100"));
}

TEST(RollupTest, LinesAddUp) {
  const std::vector<RollupRow> rows = SampleRollups().Of(RollupBy::kOp);
  EXPECT_THAT(Texts(TopLines(rows, RollupBy::kOp, 1)), ElementsAre("fusion.3 70", "(3 others) 30"));
  // The only other row takes no more room than a line about it.
  EXPECT_THAT(TopLines(rows, RollupBy::kOp, 3), ::testing::SizeIs(4));
  EXPECT_EQ(TopLines(rows, RollupBy::kOp, 3)[3].row.name, "while.2");
}

TEST(RollupTest, TablesOfSeveralProgramsMeetByKey) {
  RollupRow a, b, c;
  a.name = "x/layers_*";
  b.name = "x/layers_0";
  c.name = "x/layers_0/up";
  a.time = a.total = Microseconds(3);
  b.time = Microseconds(4);
  b.total = Microseconds(9);
  c.time = c.total = Microseconds(5);
  const std::vector<RollupRow> first = {a}, second = {b, c};
  const std::vector<RollupRow> merged = Merge({&first, &second}, RollupBy::kScope);
  EXPECT_THAT(Texts(merged), ElementsAre("x/layers_* 7", "x/layers_0/up 5"));
  EXPECT_EQ(merged[0].total, Microseconds(12));
}

TEST(RollupTest, Names) {
  for (const RollupBy by : kRollups) EXPECT_EQ(RollupOf(RollupName(by)), by);
  EXPECT_EQ(RollupOf("layer"), std::nullopt);
}

}  // namespace
}  // namespace tpusim::results
