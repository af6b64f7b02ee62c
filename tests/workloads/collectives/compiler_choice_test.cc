// Algorithms for the TPU compiler's choices; choice_table_test.cc has the rows.
#include "workloads/collectives/compiler_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/collectives/collective_interpreter.h"
#include "tests/workloads/collectives/requests.h"
#include "workloads/collectives/choice.h"

namespace tpusim::collectives {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

configs::Config Slice(const std::string& name) { return *configs::LoadConfig(name, {}); }

std::string AlgorithmOf(const std::string& slice, CollectiveKind kind, const std::vector<int>& axes,
                        int64_t bytes, const AlgorithmOverrides& overrides = {}) {
  const configs::Config config = Slice(slice);
  const auto info = EstimateCollective(config, Along(config, kind, axes, bytes), overrides);
  return info.ok() ? info->algorithm : Message(info.status());
}

constexpr auto kSum = CollectiveKind::kAllReduce;
constexpr auto kGather = CollectiveKind::kAllGather;
constexpr auto kScatter = CollectiveKind::kReduceScatter;
constexpr auto kExchange = CollectiveKind::kAllToAll;

TEST(CompilerChoiceTest, AlgorithmsThatDoWhatIsPrinted) {
  EXPECT_EQ(AlgorithmOf("v5e-4x2", kSum, {0}, 4 * kKiB), "single-phase line of 4 over x");
  EXPECT_EQ(AlgorithmOf("v5e-4x2", kSum, {0, 1}, 64 * kKiB), "Hamiltonian ring of 8 over 4x2");
  EXPECT_EQ(AlgorithmOf("v5e-4x2", kSum, {0, 1}, kMiB),
            "2-color one-way Hamiltonian ring of 8 over 4x2");
  EXPECT_EQ(AlgorithmOf("v5e-16x16", kSum, {0}, 4 * kMiB), "bidirectional ring of 16 over x");
  EXPECT_EQ(AlgorithmOf("v5e-16x16", kSum, {0, 1}, 4 * kMiB), "2-color 2-D ring 16x16");
  EXPECT_EQ(AlgorithmOf("v5p-4x4x4", kSum, {0}, 4 * kMiB), "2-color one-way ring of 4 over x");
  EXPECT_EQ(AlgorithmOf("v5p-4x4x4", kSum, {0, 1}, 4 * kMiB), "4-color one-way 2-D ring 4x4");
  EXPECT_EQ(AlgorithmOf("v5p-4x4x4", kSum, {0, 1, 2}, 4 * kMiB), "6-color one-way 3-D ring 4x4x4");
  EXPECT_EQ(AlgorithmOf("v5p-4x4x4", kSum, {0, 1, 2}, 256 * kKiB), "3-color 3-D ring 4x4x4");
  // The compiler takes the longer axis first for the reduce-scatter, so the gather
  // takes it last.
  EXPECT_EQ(AlgorithmOf("v5e-8x16", kSum, {0, 1}, 256 * kKiB),
            "1-color 2-D ring and line 8x16 (x, y)");
  EXPECT_EQ(AlgorithmOf("v5e-8x16", kSum, {0, 1}, 4 * kMiB), "2-color 2-D ring and line 8x16");
  EXPECT_EQ(AlgorithmOf("v5e-16x16", kGather, {0, 1}, 4 * kMiB),
            "Hamiltonian ring of 256 over 16x16");
  EXPECT_EQ(AlgorithmOf("v5p-4x4x4", kGather, {0, 1, 2}, 128 * kKiB),
            "all-reduce by 6-color one-way 3-D ring 4x4x4");
  EXPECT_EQ(AlgorithmOf("v5e-8x8", kGather, {0, 1}, 256 * kKiB),
            "all-reduce by 2-color 2-D line 8x8");
  EXPECT_EQ(AlgorithmOf("v5e-8x8", kGather, {0, 1}, 4 * kMiB), "Hamiltonian ring of 64 over 8x8");
  EXPECT_EQ(AlgorithmOf("v5e-16x16", kScatter, {0}, 4 * kMiB), "bidirectional ring of 16 over x");
  EXPECT_EQ(AlgorithmOf("v5e-16x16", kScatter, {0}, 32 * kKiB),
            "all-reduce by bidirectional ring of 16 over x");
  EXPECT_EQ(AlgorithmOf("v5e-16x16", kScatter, {0, 1}, 4 * kMiB),
            "all-reduce by 2-color 2-D ring 16x16");
  EXPECT_EQ(AlgorithmOf("v5e-4x4", kExchange, {0, 1}, 4 * kMiB), "direct exchange over 4x4");
  EXPECT_EQ(AlgorithmOf("v5e-8x8", kExchange, {0, 1}, 4 * kMiB), "2-color 2-D line 8x8");
  // Off-loaded: axis by axis; else one ring, as other chips print.
  const configs::Config v7x = Slice("v7x-4x4x4");
  CollectiveRequest request = Along(v7x, kGather, {0, 1, 2}, 4 * kMiB);
  EXPECT_EQ(EstimateCollective(v7x, request, {})->algorithm, "Hamiltonian ring of 64 over 4x4x4");
  request.sparse_core = true;
  EXPECT_EQ(EstimateCollective(v7x, request, {})->algorithm, "3-color 3-D ring 4x4x4");
}

TEST(CompilerChoiceTest, AlgorithmsByName) {
  const auto named = [](const std::string& text) {
    return AlgorithmOverrides{*ParseAlgorithmOverride(text)};
  };
  const auto sum = [&](const std::string& text) {
    return AlgorithmOf("v5e-16x16", kSum, {0, 1}, 8 * kKiB, named(text));
  };
  EXPECT_EQ(sum("rotated"), "2-color 2-D ring 16x16");
  EXPECT_EQ(sum("unidirectional-rotated"), "4-color one-way 2-D ring 16x16");
  EXPECT_EQ(sum("axis-by-axis"), "1-color 2-D ring 16x16 (x, y)");
  EXPECT_EQ(sum("hamiltonian-ring"), "Hamiltonian ring of 256 over 16x16");
  EXPECT_EQ(sum("single-phase:axis-by-axis"), "single-phase 1-color 2-D ring 16x16 (x, y)");
  EXPECT_EQ(sum("all-reduce=rotated"), "2-color 2-D ring 16x16");
  // For another kind: as the compiler.
  EXPECT_EQ(sum("all-gather=hamiltonian-ring"), "2-color 2-D ring 16x16");
  // The last that fits counts.
  EXPECT_EQ(
      AlgorithmOf("v5e-16x16", kSum, {0, 1}, kMiB,
                  {{"", "hamiltonian-ring"}, {"all-reduce", "rotated"}, {"all-to-all", "direct"}}),
      "2-color 2-D ring 16x16");
  EXPECT_THAT(AlgorithmOf("v5e-16x16", kSum, {0}, kMiB, named("hamiltonian-ring")),
              HasSubstr("all-reduce op.1: the algorithm hamiltonian-ring does not apply to its "
                        "groups of 16 (16) on v5e-16x16; these do: group-ring, ring, "
                        "unidirectional-ring"));
  EXPECT_THAT(Message(ParseAlgorithmOverride("rings").status()),
              HasSubstr("no algorithm \"rings\"; there are compiler, best, ring, line"));
  EXPECT_THAT(
      Message(ParseAlgorithmOverride("psum=ring").status()),
      HasSubstr("no collective \"psum\" with a choice of algorithms; these have: all-reduce"));
}

// v5e-4x4 has data, v4 and groups that are parts of axes do not.
TEST(CompilerChoiceTest, WhatIsNotKnownIsAnAssumption) {
  const auto assumptions = [](const std::string& slice, std::vector<std::vector<int64_t>> groups,
                              const AlgorithmOverrides& overrides = {}) {
    const configs::Config config = Slice(slice);
    CollectiveRequest request;
    request.kind = kGather;
    request.groups = std::move(groups);
    request.operand_bytes = Bytes(kMiB);
    request.sparse_core = config.chip.sparse_core.offload_all_gather > Bytes(0);
    return AssumptionsOf(**DecideCollective(config, request, overrides));
  };
  EXPECT_THAT(assumptions("v5e-4x4", {{0, 1, 2, 3}}), IsEmpty());
  EXPECT_THAT(assumptions("v5e-4x4", {{0, 1}}),
              ElementsAre(HasSubstr("groups that span part of an axis")));
  EXPECT_THAT(assumptions("v5e-4x4", {{0, 5}}),
              ElementsAre(HasSubstr("groups that span part of an axis")));
  EXPECT_THAT(assumptions("v6e-2x4", {{0, 1}}),
              ElementsAre(HasSubstr("not known for v6e slices like 2x4; taken by the rules of v6e "
                                    "2x2, 16x16")));
  EXPECT_THAT(assumptions("v4-4x4x4", {{0, 1, 2, 3}}),
              ElementsAre(HasSubstr("v4 slices like 4x4x4; taken by the rules of v5p 2x2, "
                                    "2x2x2, 4x4x4")));
  EXPECT_THAT(assumptions("v7x-2x2x1", {{0, 1}}), ElementsAre(HasSubstr("off-loads")));
  EXPECT_THAT(assumptions("v4-4x4x4", {{0, 1, 2, 3}}, kFastest), IsEmpty());
}

// An all-gather as an all-reduce on 8x8: zeros for the 16 MiB, then the sum.
TEST(CompilerChoiceTest, CopiesBesideAreTimed) {
  const configs::Config config = Slice("v5e-8x8");
  for (const CollectiveKind kind : {kGather, kScatter}) {
    const CollectiveRequest request = Along(config, kind, {0, 1}, 256 * kKiB);
    isa::PodProgram program;
    const auto lowered = LowerCollective(config, request, program, {});
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->info.algorithm, HasSubstr("all-reduce by"));
    const BodyRun run = RunBodies(config, program, *lowered);
    EXPECT_EQ(run.problem, "");
    EXPECT_NEAR(Ratio(run.time, lowered->info.expected), 1, 0.03);
  }
  // 16 MiB of zeros at 819e9 * 0.9 B/s = 22.76 us and 0.5 us to start.
  const CollectiveRequest sum = Along(config, kSum, {0, 1}, 16 * kMiB);
  const CollectiveRequest gather = Along(config, kGather, {0, 1}, 256 * kKiB);
  const Picoseconds copy = timing::LocalCopy(config.chip, gather.space, Bytes(16 * kMiB), 1);
  EXPECT_EQ(EstimateCollective(config, gather, {})->expected,
            EstimateCollective(config, sum, {})->expected + copy);
}

TEST(CompilerChoiceTest, AChipThatIsLikeNoneGetsTheFastest) {
  CompilerQuery query;
  query.chip = "own";
  query.slice = {4, 4, 1};
  query.extents = {4, 4};
  query.members = 16;
  query.operand = Bytes(1 << 20);
  for (const int64_t slices : {1, 2}) {
    query.slices = slices;
    const CompilerChoice choice = ChoiceOfCompiler(query);
    EXPECT_THAT(choice.assumption, HasSubstr("is not known for own; the fastest are taken"));
    EXPECT_THAT(choice.families, IsEmpty());
  }
}

// An off-loaded collective, whose algorithm the compiler does not print, takes one axis after the
// other, with as many colors as it has axes.
TEST(CompilerChoiceTest, WhatIsOffLoadedGoesAxisByAxis) {
  const configs::Config v7x = Slice("v7x-4x4x4");
  const auto algorithm = [&](CollectiveKind kind, const std::vector<int>& axes) {
    CollectiveRequest request = Along(v7x, kind, axes, 256 * kMiB);
    request.sparse_core = true;
    return EstimateCollective(v7x, request)->algorithm;
  };
  for (const CollectiveKind kind : {kSum, kGather, kScatter}) {
    EXPECT_EQ(algorithm(kind, {0}), "bidirectional ring of 4 over x");
    EXPECT_EQ(algorithm(kind, {0, 1}), "2-color 2-D ring 4x4");
    EXPECT_EQ(algorithm(kind, {0, 1, 2, kCoreAxis}), "3-color 4-D ring and line 4x4x4x2");
  }
  EXPECT_EQ(algorithm(kSum, {kCoreAxis}), "line of 2 over cores");
}

// Slices exchange what has been summed within them.
TEST(CompilerChoiceTest, SlicesExchangeInTheMiddle) {
  const auto algorithm = [](const std::string& slices, CollectiveKind kind,
                            const std::vector<int>& axes,
                            int64_t bytes) { return AlgorithmOf(slices, kind, axes, bytes); };
  for (const int64_t bytes : {16 * kKiB, 64 * kMiB}) {
    for (const CollectiveKind kind : {kSum, kGather, kScatter}) {
      EXPECT_EQ(algorithm("2x(v4-4x4x4)", kind, {0, 1, 2, kSliceAxis}, bytes),
                "3-color 3-D ring 4x4x4 and 2 slices");
      EXPECT_EQ(algorithm("2x(v4-4x4x4)", kind, {0, kSliceAxis}, bytes),
                "1-color 1-D ring 4 and 2 slices (slices, x)");
      EXPECT_EQ(algorithm("2x(v7x-2x2x1)", kind, {kCoreAxis, kSliceAxis}, bytes),
                "1-color 1-D line 2 and 2 slices (slices, cores)");
      EXPECT_EQ(algorithm("4x(v5e-2x2)", kind, {kSliceAxis}, bytes),
                "direct exchange between 4 slices");
    }
  }
  // Sums that are small pass whole operands instead of parts, as within a slice.
  EXPECT_EQ(algorithm("2x(v4-4x4x4)", kSum, {0, 1, 2, kSliceAxis}, 4 * kKiB),
            "single-phase 3-color 3-D ring 4x4x4 and 2 slices");
  EXPECT_EQ(algorithm("4x(v5e-2x2)", kSum, {kSliceAxis}, 4 * kKiB),
            "single-phase direct exchange between 4 slices");
  EXPECT_EQ(algorithm("2x(v4-4x4x4)", kGather, {0, 1, 2, kSliceAxis}, 4 * kKiB),
            "3-color 3-D ring 4x4x4 and 2 slices");
}

}  // namespace
}  // namespace tpusim::collectives
