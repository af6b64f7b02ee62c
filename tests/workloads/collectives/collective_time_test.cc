// Closed forms against hand-computed and published figures, against the bodies
// run on fluid links, and against the physical bounds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "tests/workloads/collectives/collective_interpreter.h"
#include "tests/workloads/collectives/requests.h"

namespace tpusim::collectives {
namespace {

double Microseconds(const configs::Config& config, const CollectiveRequest& request,
                    const AlgorithmOverrides& overrides = kFastest) {
  const auto info = EstimateCollective(config, request, overrides);
  EXPECT_TRUE(info.ok()) << info.status();
  return ToMicroseconds(info->expected);
}

// v5e: 45e9 B/s per link, 0.94 of it on rings, 0.867 on lines, 1 us per hop,
// 5.4 us per launch.

TEST(CollectiveTimeTest, PublishedAllGatherOverALineOfFour) {
  // V05, v5e-8: shards of 1 MiB on a line of 4, about 89 us:
  // 5.4 + 3 * 1 + 3 * 1048576 / (45e9 * 0.867) = 8.4 + 80.63 = 89.03 us.
  const configs::Config config = V5e("4x2");
  const CollectiveRequest request = Along(config, CollectiveKind::kAllGather, {0}, kMiB);
  EXPECT_NEAR(Microseconds(config, request), 89.03, 0.01);
  EXPECT_EQ(EstimateCollective(config, request)->algorithm, "line of 4 over x");
  // Bound: 3 MiB into an end at 45e9 = 69.9 us.
  EXPECT_NEAR(ToMicroseconds(EstimateCollective(config, request)->bound), 69.905, 0.001);
  EXPECT_EQ(EstimateCollective(config, request)->bytes, Bytes(4 * kMiB));
}

TEST(CollectiveTimeTest, PublishedAllGatherOverARingOfSixteen) {
  // V07b, V07h, v5e 8x16 over the wrapped axis: 2^19 B in 19.2 us, 2^32 B in 47.6 ms.
  //   5.4 + 8 + 15/32 * 2^19 / 42.3e9 = 13.4 + 5.81 = 19.21 us
  //   13.4 us + 15/32 * 2^32 / 42.3e9 = 13.4 us + 47594.9 us
  const configs::Config config = V5e("8x16");
  EXPECT_NEAR(Microseconds(config, Along(config, CollectiveKind::kAllGather, {1}, (1 << 19) / 16)),
              19.21, 0.01);
  EXPECT_NEAR(
      Microseconds(config, Along(config, CollectiveKind::kAllGather, {1}, (int64_t{1} << 32) / 16)),
      47608.3, 0.1);
  EXPECT_EQ(
      EstimateCollective(config, Along(config, CollectiveKind::kAllGather, {1}, kMiB))->algorithm,
      "bidirectional ring of 16 over y");
}

TEST(CollectiveTimeTest, AllReduceOnTheTrayIsAHamiltonianRing) {
  // 64 MiB over 4x2: chunks of 8 MiB, twice 3.5 of them over a link at
  // 45e9 * 0.867 = 39.015e9 B/s: 7 * 8388608 / 39.015e9 = 1505.06 us, 2 * 4 hops.
  const configs::Config config = V5e("4x2");
  const CollectiveRequest request = Along(config, CollectiveKind::kAllReduce, {0, 1}, 64 * kMiB);
  EXPECT_NEAR(Microseconds(config, request), 5.4 + 8 + 1505.06, 0.01);
  const auto info = EstimateCollective(config, request);
  EXPECT_EQ(info->algorithm, "Hamiltonian ring of 8 over 4x2");
  // Bound: 20 directed links, 2 * 7 * 64 MiB / 20 / 45e9 = 1043.9 us; but a corner
  // has two links, and so has the cut between the rows of two: V / 2 / 45e9 = 745.7.
  EXPECT_NEAR(ToMicroseconds(info->bound), 1043.92, 0.01);
}

TEST(CollectiveTimeTest, AllReduceOnTheFullPodUsesTwoColors) {
  // The TPU compiler splits an all-reduce of 64 MiB over 16x16 chips in two halves of 32 MiB. The
  // first half is reduced along x and then along y, the second along y and then along x ("colors:2"
  // in the compiler's own description). Each of the 2^8 chips reduces 2^25/2^8 = 2^17 B of a half.
  // Gather: 7.5 * 2^17 B, then 7.5 * 2^21 B over each link: 1.671168e7 B
  // at 42.3e9 = 395.07 us; twice, and 2 * 2 * 8 hops.
  const configs::Config config = V5e("16x16");
  const CollectiveRequest request = Along(config, CollectiveKind::kAllReduce, {0, 1}, 64 * kMiB);
  EXPECT_NEAR(Microseconds(config, request), 5.4 + 32 + 790.15, 0.02);
  EXPECT_EQ(EstimateCollective(config, request)->algorithm, "2-color 2-D ring 16x16");
}

TEST(CollectiveTimeTest, AllToAllOverARingIsAQuarterOfTheAllGather) {
  // Array of V = 16 * 64 MiB over 16 devices: V/8 = 2^27 B at 42.3e9 = 3173.0 us.
  const configs::Config config = V5e("8x16");
  EXPECT_NEAR(Microseconds(config, Along(config, CollectiveKind::kAllToAll, {1}, 64 * kMiB)),
              13.4 + 3172.99, 0.01);
}

// Two groups, one per core, over four chips of v7x: each link carries both.
TEST(CollectiveTimeTest, PublishedAllGathersOfTwoGroupsThatShareTheirLinks) {
  const configs::Config config = *configs::LoadConfig("v7x-2x2x1", {});
  const struct {
    int64_t shard;
    double microseconds;  // tpu-recipes, microbenchmarks, all_gather.md
  } published[] = {{256 * kKiB, 21.92},
                   {kMiB, 48.7},
                   {4 * kMiB, 155.4},
                   {16 * kMiB, 576.0},
                   {64 * kMiB, 2252.3}};
  for (const auto& row : published) {
    const CollectiveRequest request = Along(config, CollectiveKind::kAllGather, {0, 1}, row.shard);
    EXPECT_NEAR(Microseconds(config, request) / row.microseconds, 1, 0.02) << row.shard;
  }
  // By hand, 64 MiB: three shards over two links that two groups share. The two colors (halves of
  // the data) take the links one after the other: 11 + 2 + 3 * 2^26 / 90e9 = 2249.96 us.
  EXPECT_NEAR(Microseconds(config, Along(config, CollectiveKind::kAllGather, {0, 1}, 64 * kMiB)),
              2249.96, 0.01);
}

// Between the two devices of a chip of v7x: 5.4e11 B/s each way, one hop.
TEST(CollectiveTimeTest, AChipOfTwoDevices) {
  const configs::Config config = *configs::LoadConfig("v7x-2x2x1", {});
  // 64 MiB shards: 11 + 1 + 2^26 / 5.4e11 = 12 + 124.28 us.
  const CollectiveRequest inside =
      Along(config, CollectiveKind::kAllGather, {kCoreAxis}, 64 * kMiB);
  EXPECT_NEAR(Microseconds(config, inside), 136.28, 0.01);
  EXPECT_EQ(EstimateCollective(config, inside)->algorithm, "line of 2 over cores");
  EXPECT_NEAR(ToMicroseconds(EstimateCollective(config, inside)->bound), 124.28, 0.01);
  // Over all eight: first among the chips, as above, then the other device's four
  // shards, a color's half at half the rate: 11 + 2 + 2236.96 + 1 + 4 * 124.28 us.
  const CollectiveRequest all =
      Along(config, CollectiveKind::kAllGather, {0, 1, kCoreAxis}, 64 * kMiB);
  EXPECT_NEAR(Microseconds(config, all, {{"", "rotated"}}), 2748.06, 0.02);
  // Every chip lacks six shards, which come over two links.
  EXPECT_NEAR(ToMicroseconds(EstimateCollective(config, all)->bound), 6 * 67108864 / 180e3, 0.01);
}

// The rate of the network cards, as if all of it were reached.
constexpr char kAllOfDcn[] = "host.dcn_efficiency=1";

// Two slices of v5e: 3.125e9 B/s per chip through the hosts' network cards, after
// 1 us of PCIe, 10 us of network and 1 us of PCIe.
TEST(CollectiveTimeTest, BetweenSlices) {
  const configs::Config config = *configs::LoadConfig("2x(v5e-16x16)", {kAllOfDcn});
  // Corresponding chips exchange halves and then sums of 256 MiB:
  // 5.4 launch + 2 * (12 + 2^27 / 3.125e9 = 42949.67) us.
  const CollectiveRequest across =
      Along(config, CollectiveKind::kAllReduce, {kSliceAxis}, 256 * kMiB);
  EXPECT_NEAR(Microseconds(config, across), 5.4 + 2 * (12 + 42949.67), 0.05);
  const auto info = *EstimateCollective(config, across);
  EXPECT_EQ(info.algorithm, "direct exchange between 2 slices");
  EXPECT_TRUE(info.dcn);
  // Every chip of the slice lacks 256 MiB: 2^28 / 3.125e9 = 85899.35 us.
  EXPECT_NEAR(ToMicroseconds(info.bound), 85899.35, 0.05);

  // Over everything the slices exchange what is summed within them, a 256th each:
  // 16x16 as without slices, and 2 * (12 us + 2^19 / 3.125e9) of DCN; 5.4 counts once.
  const CollectiveRequest all =
      Along(config, CollectiveKind::kAllReduce, {0, 1, kSliceAxis}, 256 * kMiB);
  const configs::Config one = *configs::LoadConfig("v5e-16x16", {});
  const double inside =
      Microseconds(one, Along(one, CollectiveKind::kAllReduce, {0, 1}, 256 * kMiB));
  EXPECT_NEAR(Microseconds(config, all), inside + 2 * (12 + 167.77), 0.5);
  EXPECT_FALSE(EstimateCollective(config, all)->dcn);  // the torus is the bound

  // At a quarter of the rate: four times as long. The bound does not know of it.
  const configs::Config slow = *configs::LoadConfig("2x(v5e-16x16)", {"host.dcn_efficiency=0.25"});
  EXPECT_NEAR(Microseconds(slow, across), 5.4 + 2 * (12 + 4 * 42949.67), 0.1);
  EXPECT_NEAR(ToMicroseconds(EstimateCollective(slow, across)->bound), 85899.35, 0.05);
}

// One chip of a host of eight may have the whole network card: PCIe is the limit.
TEST(CollectiveTimeTest, OneChipOfAHostIsLimitedByPcie) {
  const configs::Config config = *configs::LoadConfig("2x(v5e-4x2)", {kAllOfDcn});
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllGather;
  request.groups = {{0, 8}};
  request.operand_bytes = Bytes(64 * kMiB);
  // 5.4 + 12 + 2^26 / 1.6e10 = 4194.30 us.
  EXPECT_NEAR(Microseconds(config, request), 5.4 + 12 + 4194.30, 0.02);
}

struct SweepCase {
  const char* slice;
  std::vector<int> axes;
};

std::vector<SweepCase> Sweep() {
  std::vector<SweepCase> cases;
  for (const char* slice : {"v5e-2x2", "v5e-4x2", "v5e-4x4", "v5e-8x8", "v5e-8x16", "v5e-16x16"}) {
    for (const std::vector<int>& axes : {std::vector{0}, std::vector{1}, std::vector{0, 1}}) {
      cases.push_back({slice, axes});
    }
  }
  for (const char* slice : {"v7x-2x2x1", "v7x-4x4x4", "v3-4x4"}) {
    for (const std::vector<int>& axes : {std::vector{0}, std::vector{kCoreAxis}, std::vector{0, 1},
                                         std::vector{1, kCoreAxis}, std::vector{0, 1, kCoreAxis}}) {
      cases.push_back({slice, axes});
    }
  }
  for (const char* slices : {"2x(v5e-4x4)", "4x(v5e-16x16)", "2x(v7x-2x2x1)"}) {
    for (const std::vector<int>& axes :
         {std::vector{kSliceAxis}, {0, kSliceAxis}, {0, 1, kSliceAxis}}) {
      cases.push_back({slices, axes});
    }
  }
  return cases;
}

TEST(CollectiveTimeTest, NothingIsExpectedBelowItsBound) {
  for (const SweepCase& c : Sweep()) {
    const configs::Config config = *configs::LoadConfig(c.slice, {kAllOfDcn});
    for (const CollectiveKind kind : kGroupKinds) {
      for (int64_t bytes = kKiB; bytes <= 4 * kGiB; bytes *= 4) {
        const auto info = EstimateCollective(config, Along(config, kind, c.axes, bytes));
        ASSERT_TRUE(info.ok());
        EXPECT_LE(info->bound, info->expected) << c.slice << " " << info->algorithm;
        EXPECT_GT(info->bound, Picoseconds(0));
        // Nor is the bound far below what is reached once latency does not matter.
        // Farthest off are all-reduces over lines: 1.5 V or more over a link against
        // V over the cut, at 0.867 of the nominal rate. On v3 the devices of a chip exchange
        // V besides, at 0.964 of a link, before 15/16 V cross the links, where 10/16 have
        // to: (1 / 0.964 + 0.9375 / 0.867) / 0.625 = 3.4, and memory is slow.
        if (bytes == 4 * kGiB) {
          const double limit = config.chip.name == "v3" ? 3.5 : 2.8;
          EXPECT_LE(Ratio(info->expected, info->bound), limit)
              << c.slice << " " << info->algorithm << " " << info->kind;
        }
      }
    }
  }
}

// The bodies, all groups at once, against the closed form.
TEST(CollectiveTimeTest, BodiesTakeTheirClosedForm) {
  for (const SweepCase& c : Sweep()) {
    const configs::Config config = *configs::LoadConfig(c.slice, {kAllOfDcn});
    for (const CollectiveKind kind : kGroupKinds) {
      for (const int64_t bytes : {int64_t{4096}, kMiB, 64 * kMiB}) {
        isa::PodProgram program;
        const auto lowered = LowerCollective(config, Along(config, kind, c.axes, bytes), program);
        ASSERT_TRUE(lowered.ok());
        const BodyRun run = RunBodies(config, program, *lowered);
        ASSERT_EQ(run.problem, "") << lowered->info.algorithm;
        const std::string what = fmt::format("{} {} {} of {} B", c.slice, lowered->info.algorithm,
                                             lowered->info.kind, bytes);
        EXPECT_GE(run.time, lowered->info.bound) << what;
        EXPECT_NEAR(Ratio(run.time, lowered->info.expected), 1, 0.03) << what;
      }
    }
  }
}

// 128 chips with six links each, all of which work: V = 4 GiB at 42.3e9 B/s. Colors
// take turns z, x, y; those that end along x or y hold V/3/4 there and pass it on in
// 1 + 1/2 steps, the one that ends along z holds V/3/8 and does so in 3 + 1/2, which takes
// longer: V/3 * 7/16 = 14.81 ms, and less before.
TEST(CollectiveTimeTest, TwistedTori) {
  const configs::Config config = *configs::LoadConfig("v4-4x4x8_twisted", {});
  const configs::Config plain = *configs::LoadConfig("v4-4x4x8", {});
  for (const CollectiveKind kind : kGroupKinds) {
    const int64_t bytes = kind == CollectiveKind::kAllGather ? 32 * kMiB : 4 * kGiB;
    const CollectiveRequest request = Along(config, kind, {0, 1, 2}, bytes);
    isa::PodProgram program;
    const auto lowered = LowerCollective(config, request, program);
    ASSERT_TRUE(lowered.ok());
    const BodyRun run = RunBodies(config, program, *lowered);
    ASSERT_EQ(run.problem, "") << lowered->info.algorithm;
    const std::string what = lowered->info.kind + ": " + lowered->info.algorithm;
    EXPECT_GE(run.time, lowered->info.bound) << what;
    EXPECT_NEAR(Ratio(run.time, lowered->info.expected), 1, 0.03) << what;
    EXPECT_LE(Ratio(run.time, lowered->info.bound), 1.7) << what;
    const auto straight = EstimateCollective(plain, request);
    EXPECT_LE(Ratio(run.time, straight->expected), 1.05) << what;
  }
  const CollectiveRequest gather = Along(config, CollectiveKind::kAllGather, {0, 1, 2}, 32 * kMiB);
  EXPECT_GT(Microseconds(config, gather), 14'807);
  EXPECT_LT(Microseconds(config, gather), 21'000);
}

TEST(CollectiveTimeTest, ScatteredGroupsTakeTheirClosedForm) {
  const configs::Config config = V5e("16x16");
  const configs::Config tray = V5e("4x4");
  struct Case {
    const configs::Config& config;
    std::vector<std::vector<int64_t>> groups;
  };
  // Every fourth chip of a row, four such groups in one row; a diagonal; an odd lot.
  const std::vector<Case> cases = {
      {config, {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}},
      {tray, {{0, 5, 10, 15}}},
      {tray, {{0, 1, 3, 7, 12}}},
      {tray, {{0, 2}, {1, 3}}}};
  for (const Case& c : cases) {
    for (const CollectiveKind kind : kGroupKinds) {
      CollectiveRequest request;
      request.kind = kind;
      request.groups = c.groups;
      request.operand_bytes = Bytes(64 * kMiB);
      isa::PodProgram program;
      const auto lowered = LowerCollective(c.config, request, program);
      ASSERT_TRUE(lowered.ok());
      const BodyRun run = RunBodies(c.config, program, *lowered);
      ASSERT_EQ(run.problem, "");
      EXPECT_GE(run.time, lowered->info.bound) << lowered->info.algorithm;
      EXPECT_LE(Ratio(run.time, lowered->info.expected), 1.03)
          << lowered->info.algorithm << " " << lowered->info.kind;
      EXPECT_GE(Ratio(run.time, lowered->info.expected), 0.9)
          << lowered->info.algorithm << " " << lowered->info.kind;
    }
  }
}

}  // namespace
}  // namespace tpusim::collectives
