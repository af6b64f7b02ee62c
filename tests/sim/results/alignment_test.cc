#include "sim/results/report/alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/results/report/alignment_output.h"
#include "sim/results/report/compare.h"

namespace tpusim::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Lines of one file in one scope, 1 to 4, and a layer with a number.
std::vector<isa::SourcePlace> Lines() {
  return {{"jit(f)", "f.py:1"},
          {"jit(f)", "f.py:2"},
          {"jit(f)", "f.py:3"},
          {"jit(f)", "f.py:4"},
          {"jit(f)/layer_7", "f.py:5"}};
}

Report Program(Picoseconds step, std::vector<PlacedOp> ops) {
  Report r;
  r.workload = "f";
  r.config = "toy";
  r.step_time = step;
  r.placed.places = Lines();
  r.placed.ops = std::move(ops);
  return r;
}

PlacedOp Kernel(const std::string& name, int64_t line, Picoseconds time,
                std::vector<int64_t> covered = {}) {
  return {name, OpPart::kKernel, line - 1, std::move(covered), 1, time, -1};
}

Alignment Aligned(const Report& a, const Report& b) { return Align({&a, &b}, {"A", "B"}); }

const AlignedPlace& At(const Alignment& alignment, const std::string& source) {
  return *std::ranges::find(alignment.places, source,
                            [](const AlignedPlace& p) { return p.place.source; });
}

std::vector<std::string> Names(const std::vector<AlignedKernel>& kernels) {
  std::vector<std::string> names;
  for (const AlignedKernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

TEST(Alignment, PlacesAddUpToTheStepAndTheWorstIsFirst) {
  // A: 10 + 30 and 2 idle; B: 15 + 20.
  const Report a = Program(
      Microseconds(42), {Kernel("a.1", 1, Microseconds(10)), Kernel("a.2", 2, Microseconds(30))});
  const Report b = Program(
      Microseconds(35), {Kernel("b.1", 1, Microseconds(15)), Kernel("b.2", 2, Microseconds(20))});
  const Alignment alignment = Aligned(a, b);
  std::vector<std::string> order;
  Picoseconds change{0};
  for (const AlignedPlace& place : alignment.places) {
    order.push_back(place.place.source);
    change += place.Change();
  }
  EXPECT_THAT(order, ElementsAre("f.py:2", "f.py:1", "idle"));  // -10, +5, -2
  EXPECT_EQ(change, Microseconds(35) - Microseconds(42));
  EXPECT_EQ(alignment.totals[0].Sum(), Microseconds(42));
  EXPECT_EQ(alignment.totals[1].Sum(), Microseconds(35));
  EXPECT_EQ(alignment.totals[0].kernels, 2);
}

TEST(Alignment, NamesDoNotMatterAndLayersAreOnePlace) {
  Report a = Program(Microseconds(10), {Kernel("a", 5, Microseconds(10))});
  Report b = Program(Microseconds(10), {Kernel("b", 5, Microseconds(10))});
  b.placed.places[4].scope = "jit(f)/layer_8";
  const Alignment alignment = Aligned(a, b);
  ASSERT_THAT(alignment.places, SizeIs(1));
  EXPECT_EQ(alignment.places[0].place.scope, "jit(f)/layer_*");
  EXPECT_THAT(alignment.places[0].kernels[0], IsEmpty());
  EXPECT_THAT(alignment.places[0].kernels[1], IsEmpty());
}

TEST(Alignment, KernelsOfTheSameLinesCountAtOnePlace) {
  // Both fuse lines 1 and 2; one calls it after the first of them, one after the second.
  const Report a = Program(Microseconds(10), {Kernel("a", 1, Microseconds(10), {0, 1})});
  const Report b = Program(Microseconds(12), {Kernel("b", 2, Microseconds(12), {0, 1})});
  const Alignment alignment = Aligned(a, b);
  ASSERT_THAT(alignment.places, SizeIs(1));
  EXPECT_EQ(alignment.places[0].place.source, "f.py:1");
  EXPECT_EQ(alignment.places[0].Change(), Microseconds(2));
  EXPECT_THAT(alignment.places[0].kernels[1], IsEmpty());
}

TEST(Alignment, WhatIsFusedOtherwiseIsNamedFromBothSides) {
  // A: lines 1 and 2 by themselves. B: both in one kernel, at line 2.
  const Report a = Program(Microseconds(10),
                           {Kernel("one", 1, Microseconds(6)), Kernel("two", 2, Microseconds(4))});
  const Report b = Program(Microseconds(7), {Kernel("both", 2, Microseconds(7), {0, 1})});
  const Alignment alignment = Aligned(a, b);
  const AlignedPlace& first = At(alignment, "f.py:1");
  EXPECT_THAT(Names(first.kernels[0]), ElementsAre("one"));
  // From elsewhere: B makes nothing here.
  EXPECT_THAT(Names(first.kernels[1]), ElementsAre("both"));
  EXPECT_EQ(first.kernels[1][0].made.source, "f.py:2");
  EXPECT_EQ(first.times[1].Sum(), Picoseconds(0));
  const AlignedPlace& second = At(alignment, "f.py:2");
  EXPECT_THAT(Names(second.kernels[0]), ElementsAre("two"));
  EXPECT_THAT(Names(second.kernels[1]), ElementsAre("both"));
  EXPECT_THAT(second.kernels[1][0].covered, SizeIs(2));
  const std::string text = AlignmentText(alignment, 8, 200);
  EXPECT_THAT(text, HasSubstr("one 6.000 us  in both of :2 7.000 us"));
  EXPECT_THAT(text, HasSubstr("two 4.000 us  both 7.000 us, with :1"));
}

PlacedOp Collective(const std::string& name, int64_t line, Picoseconds time) {
  return {name, OpPart::kCollective, line - 1, {}, 2, time, 0};
}

TEST(Alignment, CollectivesThatRunOtherwise) {
  Report a = Program(Microseconds(10), {Collective("all-gather", 3, Microseconds(10))});
  Report b = Program(Microseconds(4), {Collective("all-gather", 3, Microseconds(4))});
  const PlacedCollective ring{"all-gather", "ring of 4 over x", Bytes(1 << 20), 4, false};
  a.placed.collectives = {ring};
  b.placed.collectives = {ring};
  EXPECT_THAT(At(Aligned(a, b), "f.py:3").collectives[0], IsEmpty());

  b.placed.collectives[0].asynchronous = true;
  const Alignment alignment = Aligned(a, b);
  const AlignedPlace& place = At(alignment, "f.py:3");
  ASSERT_THAT(place.collectives[1], SizeIs(1));
  EXPECT_TRUE(place.collectives[1][0].how.asynchronous);
  EXPECT_EQ(place.collectives[1][0].count, 2);
  EXPECT_EQ(place.times[0].In(OpPart::kCollective), Microseconds(10));
  ASSERT_THAT(alignment.kinds, SizeIs(1));
  EXPECT_EQ(alignment.kinds[0].second[0].bytes, Bytes(2 << 20));
  EXPECT_EQ(alignment.kinds[0].second[1].asynchronous, 2);
  EXPECT_THAT(AlignmentText(alignment, 8, 200),
              HasSubstr("2 all-gather of 1.000 MiB over 4, asynchronous, 4.000 us, ring of 4"));
}

TEST(Alignment, MemoryOfTheSamePlaceAndOwner) {
  Report a = Program(Microseconds(1), {}), b = a;
  a.peak.hbm() = Bytes(300);
  b.peak.hbm() = Bytes(100);
  // An argument has no line, and its scope is its name.
  isa::LiveArray argument, temporary;
  argument.owner = "arguments";
  argument.scope = "w";
  argument.bytes = Bytes(100);
  temporary.owner = "temporaries";
  temporary.scope = "jit(f)/add";
  temporary.source = "f.py:2";
  temporary.bytes = Bytes(200);
  a.memory_at_peak.arrays = {argument, temporary};
  b.memory_at_peak.arrays = {argument};
  const Alignment alignment = Aligned(a, b);
  ASSERT_THAT(alignment.memory, SizeIs(2));
  EXPECT_EQ(alignment.memory[0].owner, "temporaries");
  EXPECT_EQ(alignment.memory[0].place, (isa::SourcePlace{"jit(f)", "f.py:2"}));
  EXPECT_EQ(alignment.memory[0].Change(), Bytes(-200));
  EXPECT_EQ(alignment.memory[1].place.scope, "w");
  EXPECT_EQ(alignment.memory[1].Change(), Bytes(0));
  EXPECT_EQ(alignment.peak[0], Bytes(300));
}

TEST(Alignment, ByScopeOrLineAlone) {
  const Report a = Program(Microseconds(10),
                           {Kernel("one", 1, Microseconds(6)), Kernel("two", 2, Microseconds(4))});
  const Alignment by_scope = Align({&a, &a}, {"A", "B"}, AlignBy::kScope);
  ASSERT_THAT(by_scope.places, SizeIs(1));
  EXPECT_EQ(by_scope.places[0].place, (isa::SourcePlace{"jit(f)", ""}));
  const Alignment by_source = Align({&a, &a}, {"A", "B"}, AlignBy::kSource);
  EXPECT_THAT(by_source.places, SizeIs(2));
}

Compared ColumnOfReport(Report report) {
  Compared column{report.workload, report.config, std::nullopt, ""};
  column.report = std::move(report);
  return column;
}

TEST(Alignments, PairAProgramOfTheTpuCompilerWithItsExport) {
  const Report plain = Program(Microseconds(1), {Kernel("k", 1, Microseconds(1))});
  Report compiled = plain, other_name = plain, other_slice = plain;
  compiled.placed.by_tpu_compiler = true;
  other_name.workload = "g";
  other_slice.config = "other";
  const auto pairs = [](const std::vector<Report>& reports) {
    std::vector<Compared> compared;
    for (const Report& report : reports) compared.push_back(ColumnOfReport(report));
    std::string labels;
    for (const Alignment& a : Alignments(compared)) {
      labels += a.labels[0] + a.labels[1] + (a.compiled == 0 ? "<" : ">");
    }
    return labels;
  };
  EXPECT_EQ(pairs({plain, compiled}), "AB>");
  EXPECT_EQ(pairs({compiled, plain}), "AB<");
  EXPECT_EQ(pairs({other_name, compiled, other_slice, plain, compiled}), "BD<DE>");
  EXPECT_EQ(pairs({plain, plain}), "");
  EXPECT_EQ(pairs({compiled, compiled}), "");
  EXPECT_EQ(pairs({other_name, other_slice, compiled}), "");
}

TEST(Alignments, AreInTextAndJsonOnlyIfThereAreAny) {
  const Report plain = Program(Microseconds(1), {Kernel("k", 1, Microseconds(1))});
  Report compiled = plain;
  compiled.placed.by_tpu_compiler = true;
  const std::vector<Compared> both = {ColumnOfReport(plain), ColumnOfReport(compiled)};
  const std::vector<Compared> ordinary = {ColumnOfReport(plain), ColumnOfReport(plain)};
  EXPECT_THAT(Compare(both), HasSubstr("\nB, by the TPU compiler, beside A, by tpusim\n"));
  EXPECT_THAT(Compare(ordinary), Not(HasSubstr("TPU compiler")));
  const auto json = nlohmann::json::parse(CompareJson(both, {}));
  ASSERT_THAT(json["alignment"], SizeIs(1));
  EXPECT_EQ(json["alignment"][0]["compiled"], "B");
  EXPECT_FALSE(nlohmann::json::parse(CompareJson(ordinary, {})).contains("alignment"));
}

TEST(Alignment, WhatItIsMadeOfGoesThroughJson) {
  Report a = Program(Microseconds(10), {Kernel("one", 1, Microseconds(6), {0, 1}),
                                        Collective("all-gather", 3, Microseconds(4))});
  a.placed.by_tpu_compiler = true;
  a.placed.collectives = {{"all-gather", "ring", Bytes(8), 4, true}};
  const std::string text = ToJson(a, JsonDetail::kPlaced);
  const absl::StatusOr<Report> back = FromJson(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back, JsonDetail::kPlaced), text);
  EXPECT_TRUE(back->placed.by_tpu_compiler);
  EXPECT_EQ(back->placed.ops[1].part, OpPart::kCollective);
  EXPECT_THAT(ToJson(a, JsonDetail::kExchange), Not(HasSubstr("placed")));
}

}  // namespace
}  // namespace tpusim::results
