// Permutations: routes, halves, fills and copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/collectives/collective_interpreter.h"
#include "tests/workloads/collectives/requests.h"
#include "workloads/collectives/permute.h"

namespace tpusim::collectives {
namespace {

using ::testing::HasSubstr;

CollectiveRequest Permute(std::vector<std::pair<int64_t, int64_t>> pairs, int64_t bytes) {
  CollectiveRequest request;
  request.kind = CollectiveKind::kPermute;
  request.name = "shift";
  request.pairs = std::move(pairs);
  request.operand_bytes = Bytes(bytes);
  return request;
}

// Lowers, runs, and expects the closed form exactly (up to picoseconds).
LoweredCollective Checked(const configs::Config& config, const CollectiveRequest& request,
                          isa::PodProgram& program) {
  auto lowered = LowerCollective(config, request, program);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  const BodyRun run = RunBodies(config, program, *lowered);
  EXPECT_EQ(run.problem, "");
  EXPECT_NEAR(static_cast<double>(run.time.value()),
              static_cast<double>(lowered->info.expected.value()), 10);
  EXPECT_GE(run.time, lowered->info.bound);
  EXPECT_EQ(RunBodies(config, program, *lowered, 4).problem, "");
  return *std::move(lowered);
}

TEST(PermuteTest, ShiftAlongALineOfFourComesBackTheOtherWay) {
  // Row 0 of 4x2: 0>1>2>3>0. The last pair crosses three links against the
  // others: 5.4 + 3 + 2^20 / 39.015e9 = 8.4 + 26.876 us.
  const configs::Config config = V5e("4x2");
  isa::PodProgram program;
  const auto lowered = Checked(config, Permute({{0, 1}, {1, 2}, {2, 3}, {3, 0}}, kMiB), program);
  EXPECT_NEAR(ToMicroseconds(lowered.info.expected), 35.276, 0.001);
  EXPECT_EQ(lowered.info.algorithm, "direct over minimum-hop routes");
  EXPECT_EQ(lowered.info.kind, "collective-permute");
  EXPECT_EQ(lowered.info.group_size, 4);
  // Bound: 2^20 / 45e9 = 23.302 us for one pair; 6 hops over 20 links are less.
  EXPECT_NEAR(ToMicroseconds(lowered.info.bound), 23.302, 0.001);
}

TEST(PermuteTest, RoundARingTheMeanOfTheHopsCounts) {
  const configs::Config config = V5e("4x2");
  const CollectiveUse ring = PermuteUse(config, Permute({{0, 1}, {1, 2}, {2, 3}, {3, 0}}, kMiB));
  // Launch and (1 + 1 + 1 + 3) / 4 hops; the last pair has the links back for itself.
  EXPECT_NEAR(ToMicroseconds(ring.latency), 5.4 + 1.5, 1e-3);
  EXPECT_NEAR(ToMicroseconds(ring.time), 26.876, 0.001);
  EXPECT_EQ(ring.links[static_cast<size_t>(configs::Direction::kXPlus)], ring.time);
  EXPECT_EQ(ring.links[static_cast<size_t>(configs::Direction::kXMinus)], ring.time);
  EXPECT_EQ(ring.links[static_cast<size_t>(configs::Direction::kYPlus)], Picoseconds(0));
  // Read and written: 2 * 2^20 / (819e9 * 0.9).
  EXPECT_NEAR(ToMicroseconds(ring.hbm), 2.845, 0.001);
  EXPECT_NEAR(ring.rate.value(), 39.015e9, 1e7);
  // A chain is as late as its slowest pair.
  const CollectiveUse chain = PermuteUse(config, Permute({{0, 1}, {1, 3}}, kMiB));
  EXPECT_NEAR(ToMicroseconds(chain.latency), 5.4 + 2, 1e-3);
  EXPECT_EQ(chain.links[static_cast<size_t>(configs::Direction::kXMinus)], Picoseconds(0));
}

TEST(PermuteTest, DevicesOfAChipSwapBesideALink) {
  // v7x, 64 MiB at 5.4e11 B/s on the chip, and at 9e10 B/s over the two links between
  // the chips (1,0) and (0,1). Launch is 11 us, a hop 1.
  const configs::Config config = *configs::LoadConfig("v7x-2x2x1", {});
  isa::PodProgram program;
  const auto swap = Checked(config, Permute({{0, 1}, {1, 0}}, 64 * kMiB), program);
  EXPECT_NEAR(ToMicroseconds(swap.info.bound), 124.28, 0.01);
  EXPECT_NEAR(ToMicroseconds(swap.info.expected), 11 + 1 + 124.28, 0.01);
  const auto both = Checked(config, Permute({{0, 1}, {1, 0}, {2, 4}, {4, 2}}, 64 * kMiB), program);
  EXPECT_NEAR(ToMicroseconds(both.info.expected), 11 + 2 + 745.65, 0.01);
}

TEST(PermuteTest, ShiftRoundARingUsesTheRouteOfTheAxis) {
  const configs::Config config = V5e("16x16");
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t chip = 0; chip < 256; ++chip) {
    pairs.push_back({chip, chip / 16 * 16 + (chip + 1) % 16});
  }
  isa::PodProgram program;
  const auto lowered = Checked(config, Permute(pairs, 64 * kMiB), program);
  EXPECT_EQ(lowered.info.group_size, 16);  // sixteen rings, not 256 devices
  ASSERT_EQ(program.routes.size(), 1u);
  EXPECT_EQ(program.routes[0].name, "x+");
  EXPECT_EQ(lowered.bodies.size(), 1u);
}

TEST(PermuteTest, TheAntipodeGetsHalfFromEachSide) {
  // Ring of 16, everybody sends 8 further: both directions carry 8 half messages
  // per link: 5.4 + 8 + 8 * 2^19 / 42.3e9 = 13.4 + 99.156 us.
  const configs::Config config = V5e("16x16");
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t x = 0; x < 16; ++x) pairs.push_back({x, (x + 8) % 16});
  isa::PodProgram program;
  const auto lowered = Checked(config, Permute(pairs, kMiB), program);
  EXPECT_NEAR(ToMicroseconds(lowered.info.expected), 112.556, 0.001);
  EXPECT_EQ(program.routes.size(), 2u);
  EXPECT_EQ(program.routes[0].name, "x+8");
  EXPECT_EQ(program.routes[1].name, "x-8");
}

TEST(PermuteTest, OpenChainFillsTheFirstWithZeros) {
  const configs::Config config = V5e("4x2");
  isa::PodProgram program;
  const auto lowered = Checked(config, Permute({{0, 1}, {1, 2}, {2, 3}}, kMiB), program);
  // The first sends and fills, the middle sends and waits, the last only waits;
  // all others fill.
  EXPECT_EQ(lowered.bodies.size(), 4u);
  EXPECT_EQ((*lowered.role_of_device)[1], (*lowered.role_of_device)[2]);
  int fills = 0;
  for (const isa::Instruction& instruction : *lowered.bodies[(*lowered.role_of_device)[0]]) {
    if (const auto* dma = std::get_if<isa::Dma>(&instruction.kind)) {
      ++fills;
      EXPECT_EQ(dma->from, isa::MemorySpace::kVmem);
      EXPECT_EQ(dma->to, isa::MemorySpace::kHbm);
      EXPECT_EQ(dma->bytes, Bytes(kMiB));
    }
  }
  EXPECT_EQ(fills, 1);
}

TEST(PermuteTest, SelfPairsAreLocalCopies) {
  const configs::Config config = V5e("2x2");
  isa::PodProgram program;
  const auto lowered =
      Checked(config, Permute({{0, 0}, {1, 1}, {2, 2}, {3, 3}}, 64 * kMiB), program);
  EXPECT_EQ(lowered.info.algorithm, "local copy");
  EXPECT_EQ(lowered.info.bound, Picoseconds(0));
  EXPECT_TRUE(program.routes.empty());
  EXPECT_EQ(RunBodies(config, program, lowered).bytes_sent, 0);
}

TEST(PermuteTest, DevicesOfAPermutationRunOneProgram) {
  // 0 stays, 1 and 3 swap (two ways round a ring of four are equally long), 2 stays.
  const configs::Config config = *configs::LoadConfig("v5p-4x4x4", {});
  isa::PodProgram program;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t d = 0; d < 64; ++d) pairs.emplace_back(d, d / 4 * 4 + (4 - d % 4) % 4);
  const auto lowered = Checked(config, Permute(pairs, kMiB), program);
  EXPECT_EQ(lowered.bodies.size(), 1);
  ASSERT_EQ(program.routes.size(), 2);
  for (const isa::Route& route : program.routes) {
    EXPECT_EQ(route.from[0].peer, 0);
    EXPECT_TRUE(route.from[0].links.empty());
    EXPECT_EQ(route.from[1].peer, 3);
  }
  EXPECT_EQ(RunBodies(config, program, lowered).bytes_sent, 64 * kMiB);
}

TEST(PermuteTest, SharedLinksAreCounted) {
  // 0>2 and 1>3 on a line both cross 1>2: 5.4 + 2 + 2 * 2^20 / 39.015e9 = 61.152 us.
  const configs::Config config = V5e("4x4");
  isa::PodProgram program;
  const auto lowered = Checked(config, Permute({{0, 2}, {1, 3}}, kMiB), program);
  EXPECT_NEAR(ToMicroseconds(lowered.info.expected), 61.152, 0.001);
}

TEST(PermuteTest, MistakesAreNamed) {
  const configs::Config config = V5e("2x2");
  isa::PodProgram program;
  const auto error = [&](std::vector<std::pair<int64_t, int64_t>> pairs) {
    const auto lowered = LowerCollective(config, Permute(std::move(pairs), 8), program);
    return lowered.ok() ? "" : Message(lowered.status());
  };
  EXPECT_THAT(error({{0, 1}, {0, 2}}),
              HasSubstr("collective-permute shift: device 0 is the source of more than one pair"));
  EXPECT_THAT(error({{0, 1}, {2, 1}}), HasSubstr("device 1 is the target of more than one pair"));
  EXPECT_THAT(error({{0, 4}}), HasSubstr("device 4 does not exist"));
}

}  // namespace
}  // namespace tpusim::collectives
