// Algorithms of groups, and the bodies that they are lowered to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <numeric>
#include <set>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/collectives/collective_interpreter.h"
#include "tests/workloads/collectives/requests.h"
#include "workloads/collectives/choice.h"

namespace tpusim::collectives {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

configs::Config Torus(std::array<int64_t, 3> shape, bool wraps) {
  configs::Config config = V5e("1x1");
  config.topology = configs::Topology(shape, {wraps, wraps, wraps}, 1);
  return config;
}

std::string AlgorithmOf(const configs::Config& config, const CollectiveRequest& request) {
  const auto info = EstimateCollective(config, request);
  return info.ok() ? info->algorithm : Message(info.status());
}

// Every pair of groups of these shapes: the shortcut finds what the search finds.
TEST(BoxTest, AMovedBoxIsTheSameAsOneFound) {
  const configs::Topology topology({8, 6, 1}, {true, false, false}, 2);
  const std::vector<std::vector<int64_t>> shapes = {
      {0, 8, 4, 12},       // every second chip round x, one device each
      {0, 2, 16, 18},      // 2x2, one device each
      {14, 0, 30, 16},     // the same across the seam
      {0, 1, 2, 3, 4, 5},  // three chips, both devices
      {0, 32, 64},         // every second chip along y
      {1, 33, 66},         // no box
  };
  int moved = 0, refused = 0;
  for (const std::vector<int64_t>& shape : shapes) {
    const auto box = FindBox(topology, shape);
    for (int64_t by = 0; by < topology.devices(); ++by) {
      std::vector<int64_t> group = shape;
      for (int64_t& device : group) device = (device + by) % topology.devices();
      const auto found = FindBox(topology, group);
      const auto shortcut = box ? MovedBox(topology, *box, shape, group) : std::nullopt;
      if (!shortcut) {
        ++refused;
        continue;
      }
      ++moved;
      ASSERT_TRUE(found);
      EXPECT_TRUE(SameForm(*found, *shortcut));
      for (const int64_t device : group) {
        EXPECT_EQ(PositionIn(topology, *found, device), PositionIn(topology, *shortcut, device));
      }
    }
  }
  EXPECT_GT(moved, 100);
  EXPECT_GT(refused, 100);
}

TEST(BoxTest, RecognisesRingsLinesAndStrides) {
  const configs::Topology topology({16, 4, 1}, {true, false, false}, 1);
  std::vector<int64_t> row(16);
  std::iota(row.begin(), row.end(), 0);
  const auto ring = FindBox(topology, row);
  ASSERT_TRUE(ring && ring->runs.size() == 1);
  EXPECT_TRUE(ring->runs[0].ring);
  EXPECT_EQ(ring->runs[0].stride, 1);
  // Every fourth chip goes round the wrapped axis evenly; every third does not.
  const auto strided = FindBox(topology, {12, 0, 4, 8});
  ASSERT_TRUE(strided);
  EXPECT_TRUE(strided->runs[0].ring);
  EXPECT_EQ(strided->runs[0].stride, 4);
  const auto thirds = FindBox(topology, {0, 3, 6});
  ASSERT_TRUE(thirds);
  EXPECT_FALSE(thirds->runs[0].ring);
  EXPECT_EQ(thirds->runs[0].stride, 3);
  // 14, 15, 0, 1 is a line across the seam.
  const auto seam = FindBox(topology, {0, 1, 14, 15});
  ASSERT_TRUE(seam);
  EXPECT_FALSE(seam->runs[0].ring);
  EXPECT_EQ(seam->runs[0].first, 14);
  EXPECT_EQ(PositionIn(topology, *seam, 1)[0], 3);
  EXPECT_FALSE(FindBox(topology, {0, 1, 3}));
  EXPECT_FALSE(FindBox(topology, {0, 17}));  // diagonal: 2x2 combinations, 2 members
  EXPECT_TRUE(FindBox(topology, {0, 1, 16, 17}));
}

TEST(BoxTest, HamiltonianCycleOfTheTray) {
  const configs::Topology topology({4, 2, 1}, {false, false, false}, 1);
  const Box box = *FindBox(topology, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(HamiltonianCycle(box),
              ElementsAre(Position{0, 0}, Position{1, 0}, Position{2, 0}, Position{3, 0},
                          Position{3, 1}, Position{2, 1}, Position{1, 1}, Position{0, 1}));
}

TEST(BoxTest, HamiltonianCyclesWalkAlongLinks) {
  for (const auto& shape : {std::array<int64_t, 3>{2, 2, 1}, std::array<int64_t, 3>{3, 4, 1},
                            std::array<int64_t, 3>{5, 2, 1}, std::array<int64_t, 3>{2, 2, 2},
                            std::array<int64_t, 3>{3, 2, 4}, std::array<int64_t, 3>{3, 3, 2}}) {
    const configs::Topology topology(shape, {false, false, false}, 1);
    std::vector<int64_t> all(topology.chips());
    std::iota(all.begin(), all.end(), 0);
    const std::vector<Position> cycle = HamiltonianCycle(*FindBox(topology, all));
    ASSERT_EQ(cycle.size(), all.size());
    std::set<int64_t> seen;
    for (size_t i = 0; i < cycle.size(); ++i) {
      // All axes with extent count as runs, so positions are in order of axes.
      std::array<int64_t, 3> at = {0, 0, 0}, next = {0, 0, 0};
      size_t run = 0;
      for (int axis = 0; axis < 3; ++axis) {
        if (shape[axis] == 1) continue;
        at[axis] = cycle[i][run];
        next[axis] = cycle[(i + 1) % cycle.size()][run];
        ++run;
      }
      seen.insert(topology.ChipAt({at}));
      EXPECT_EQ(topology.Distance(topology.ChipAt({at}), topology.ChipAt({next})), 1);
    }
    EXPECT_EQ(seen.size(), all.size());
  }
}

TEST(BoxTest, NoHamiltonianCycleThroughAnOddBox) {
  const configs::Topology topology({3, 3, 1}, {false, false, false}, 1);
  EXPECT_TRUE(HamiltonianCycle(*FindBox(topology, {0, 1, 2, 3, 4, 5, 6, 7, 8})).empty());
}

TEST(BoxTest, MinimumHopRingUndoesCrossings) {
  // Corners and edge middles of 3x3, listed out of order: the ring around has 8 hops.
  const configs::Topology topology({3, 3, 1}, {false, false, false}, 1);
  const std::vector<int64_t> ring = MinimumHopRing(topology, {0, 8, 2, 6, 1, 7, 3, 5});
  int64_t hops = 0;
  for (size_t i = 0; i < ring.size(); ++i) {
    hops += topology.Distance(ring[i], ring[(i + 1) % ring.size()]);
  }
  EXPECT_EQ(hops, 8);
}

TEST(ChoiceTest, NamesSayWhatRunsWhere) {
  const CollectiveKind gather = CollectiveKind::kAllGather;
  const auto name = [&](const configs::Config& config, const std::vector<int>& axes) {
    return AlgorithmOf(config, Request(gather, GroupsAlong(config.topology, axes), kMiB));
  };
  EXPECT_EQ(name(V5e("8x16"), {1}), "bidirectional ring of 16 over y");
  EXPECT_EQ(name(V5e("8x16"), {0}), "line of 8 over x");
  EXPECT_EQ(name(V5e("4x2"), {0, 1}), "Hamiltonian ring of 8 over 4x2");
  EXPECT_EQ(name(V5e("16x16"), {0, 1}), "2-color 2-D ring 16x16");
  EXPECT_EQ(name(Torus({4, 4, 4}, true), {0, 1, 2}), "3-color 3-D ring 4x4x4");
  EXPECT_EQ(name(V5e("8x16"), {0, 1}), "2-color 2-D ring and line 8x16");
  const configs::Config tray = V5e("4x4");
  EXPECT_EQ(AlgorithmOf(tray, Request(gather, {{0, 1, 3, 7, 12}}, kMiB)), "minimum-hop ring of 5");
  EXPECT_EQ(AlgorithmOf(V5e("16x16"), Request(gather, {{0, 4, 8, 12}}, kMiB)),
            "bidirectional ring of 4 over x, every 4 chips");
  EXPECT_EQ(AlgorithmOf(tray, Request(CollectiveKind::kAllToAll, {{0, 5, 10}}, kMiB)),
            "direct exchange of 3");
}

TEST(ChoiceTest, SmallAllReducesTakeOnePhase) {
  // Ring of 16: 8 hops and 7.5 V instead of 16 hops and 1.875 V.
  const configs::Config config = V5e("8x16");
  const auto groups = GroupsAlong(config.topology, {1});
  const auto small = EstimateCollective(config, Request(CollectiveKind::kAllReduce, groups, 4096));
  EXPECT_EQ(small->algorithm, "single-phase bidirectional ring of 16 over y");
  // 5.4 + 8 + 7.5 * 4096 / 42.3e9 = 14.126 us
  EXPECT_NEAR(ToMicroseconds(small->expected), 14.126, 0.001);
  EXPECT_EQ(AlgorithmOf(config, Request(CollectiveKind::kAllReduce, groups, 10241)),
            "bidirectional ring of 16 over y");
}

TEST(ChoiceTest, StridedGroupsShareTheLinksBetween) {
  const configs::Config config = V5e("16x16");
  const auto alone =
      EstimateCollective(config, Request(CollectiveKind::kAllGather, {{0, 4, 8, 12}}, 16 * kMiB));
  const auto four = EstimateCollective(
      config, Request(CollectiveKind::kAllGather,
                      {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}, 16 * kMiB));
  // 1.5 shards of 2^24 B at 42.3e9 = 594.9 us alone, four times that in company;
  // 2 steps of 4 hops.
  EXPECT_NEAR(ToMicroseconds(alone->expected), 5.4 + 8 + 594.94, 0.01);
  EXPECT_NEAR(ToMicroseconds(four->expected), 5.4 + 8 + 4 * 594.94, 0.02);
}

TEST(LoweringTest, ARingIsOneRoleAndABodyThatDoesNotGrow) {
  const configs::Config config = V5e("16x16");
  isa::PodProgram program;
  const auto lowered = LowerCollective(
      config, Request(CollectiveKind::kAllReduce, GroupsAlong(config.topology, {0, 1}), kMiB),
      program);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->bodies.size(), 1u);
  EXPECT_THAT(*lowered->role_of_device, ::testing::Each(0));
  EXPECT_EQ(program.routes.size(), 4u);  // x+ x- y+ y-
  EXPECT_EQ(program.flags, 4);
  // Launch, and per phase and direction in time a loop and a halved step.
  EXPECT_LE(lowered->bodies[0]->size(), 60u);
  const auto* launch = std::get_if<isa::Block>(&(*lowered->bodies[0])[0].kind);
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->latency, Cycles(8100));  // 5.4 us at 1.5 GHz
}

int64_t PollsIn(const isa::Body& body) {
  int64_t polls = 0;
  for (const isa::Instruction& instruction : body) {
    polls += std::holds_alternative<isa::Poll>(instruction.kind);
    const auto* loop = std::get_if<isa::Loop>(&instruction.kind);
    if (loop != nullptr) polls += loop->count * PollsIn(*loop->body);
  }
  return polls;
}

// A bidirectional ring of 256 members takes 128 steps. The all-gather's start sends those of the
// first; a kernel's step must come before each of the others.
TEST(LoweringTest, ACarriedRingPollsBeforeAllStepsButTheFirst) {
  const configs::Config config = V5e("16x16");
  isa::PodProgram program;
  auto request = Request(CollectiveKind::kAllGather, {{}}, kMiB);
  for (int64_t device = 0; device < 256; ++device) request.groups[0].push_back(device);
  const AlgorithmOverrides ring = {{"", "hamiltonian-ring"}};
  const auto alone = LowerCollective(config, request, program, ring);
  request.carried = true;
  const auto carried = LowerCollective(config, request, program, ring);
  ASSERT_TRUE(alone.ok() && carried.ok()) << Message(alone.status());
  EXPECT_EQ(PollsIn(*alone->bodies[0]), 0);
  EXPECT_EQ(PollsIn(*carried->bodies[0]), 127);
  EXPECT_NE(std::get_if<isa::Block>(&(*alone->bodies[0])[0].kind), nullptr);
  EXPECT_EQ(std::get_if<isa::Block>(&(*carried->bodies[0])[0].kind), nullptr);
  EXPECT_EQ(carried->info.expected, alone->info.expected);
}

TEST(LoweringTest, ALineHasOneRolePerPosition) {
  const configs::Config config = V5e("8x8");
  isa::PodProgram program;
  const auto lowered = LowerCollective(
      config, Request(CollectiveKind::kAllGather, GroupsAlong(config.topology, {0}), kMiB),
      program);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->bodies.size(), 8u);
  for (int64_t chip = 0; chip < 64; ++chip) {
    EXPECT_EQ((*lowered->role_of_device)[chip], (*lowered->role_of_device)[chip % 8]);
  }
}

TEST(LoweringTest, RoutesAreSharedAndFlagsAreNot) {
  const configs::Config config = V5e("4x4");
  isa::PodProgram program;
  const auto request = Request(CollectiveKind::kAllGather, GroupsAlong(config.topology, {0}), kMiB);
  ASSERT_TRUE(LowerCollective(config, request, program).ok());
  const size_t routes = program.routes.size();
  const int32_t flags = program.flags;
  ASSERT_TRUE(LowerCollective(config, request, program).ok());
  EXPECT_EQ(program.routes.size(), routes);
  EXPECT_EQ(program.flags, 2 * flags);
}

TEST(LoweringTest, SumsSayWhatTheyAdd) {
  const configs::Config config = V5e("4x4");
  isa::PodProgram program;
  CollectiveRequest request =
      Request(CollectiveKind::kReduceScatter, GroupsAlong(config.topology, {0}), kMiB);
  request.element_bytes = 2;
  request.space = isa::MemorySpace::kVmem;
  const auto lowered = LowerCollective(config, request, program);
  ASSERT_TRUE(lowered.ok());
  int sends = 0;
  for (const isa::Instruction& instruction : *lowered->bodies[0]) {
    const auto* rdma = std::get_if<isa::Rdma>(&instruction.kind);
    if (rdma == nullptr) continue;
    ++sends;
    ASSERT_TRUE(rdma->reduce);
    EXPECT_EQ(rdma->reduce->element_bytes, 2);
    EXPECT_EQ(rdma->from, isa::MemorySpace::kVmem);
    EXPECT_EQ(rdma->to, isa::MemorySpace::kVmem);
  }
  EXPECT_GT(sends, 0);
}

TEST(LoweringTest, DevicesOutsideTheGroupsTakeNoPart) {
  const configs::Config config = V5e("4x4");
  isa::PodProgram program;
  const auto lowered =
      LowerCollective(config, Request(CollectiveKind::kAllGather, {{4, 5, 6, 7}}, kMiB), program);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ((*lowered->role_of_device)[0], -1);
  EXPECT_GE((*lowered->role_of_device)[5], 0);
}

TEST(LoweringTest, AGroupOfOneIsALocalCopy) {
  const configs::Config config = V5e("2x2");
  isa::PodProgram program;
  const auto lowered = LowerCollective(
      config, Request(CollectiveKind::kAllReduce, {{0}, {1}, {2}, {3}}, kMiB), program);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->info.algorithm, "local copy");
  EXPECT_EQ(lowered->info.bound, Picoseconds(0));
  const BodyRun run = RunBodies(config, program, *lowered);
  EXPECT_EQ(run.time, lowered->info.expected);
  EXPECT_EQ(run.bytes_sent, 0);
}

TEST(LoweringTest, NothingToMoveTakesNoTime) {
  const configs::Config config = V5e("2x2");
  isa::PodProgram program;
  const auto lowered =
      LowerCollective(config, Request(CollectiveKind::kAllReduce, {{0, 1, 2, 3}}, 0), program);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->info.algorithm, "nothing to transfer");
  EXPECT_EQ(RunBodies(config, program, *lowered).time, Picoseconds(0));
}

TEST(LoweringTest, EstimateAgreesWithLowering) {
  const configs::Config config = V5e("4x4");
  for (const auto& groups : {GroupsAlong(config.topology, {0, 1}),
                             std::vector<std::vector<int64_t>>{{0, 5, 10, 15}, {1, 2, 3, 4}}}) {
    isa::PodProgram program;
    const auto request = Request(CollectiveKind::kAllReduce, groups, 3 * kMiB);
    const auto lowered = LowerCollective(config, request, program);
    const auto info = EstimateCollective(config, request);
    ASSERT_TRUE(lowered.ok() && info.ok());
    EXPECT_EQ(lowered->info.expected, info->expected);
    EXPECT_EQ(lowered->info.bound, info->bound);
    EXPECT_EQ(lowered->info.algorithm, info->algorithm);
    EXPECT_EQ(info->group_size, static_cast<int64_t>(groups[0].size()));
  }
}

TEST(LoweringTest, MistakesAreNamed) {
  const configs::Config config = V5e("4x2");
  isa::PodProgram program;
  const auto error = [&](const CollectiveRequest& request, const configs::Config& on) {
    const auto lowered = LowerCollective(on, request, program);
    return lowered.ok() ? "" : Message(lowered.status());
  };
  const CollectiveKind gather = CollectiveKind::kAllGather;
  EXPECT_THAT(error(Request(gather, {}, 8), config), HasSubstr("all-gather op.1: has no groups"));
  EXPECT_THAT(error(Request(gather, {{0, 8}}, 8), config),
              HasSubstr("device 8 does not exist on v5e-4x2, which has 8 devices"));
  EXPECT_THAT(error(Request(gather, {{0, 1}, {1, 2}}, 8), config),
              HasSubstr("device 1 is in the groups more than once"));
  EXPECT_THAT(error(Request(gather, {{0, 1}, {2}}, 8), config),
              HasSubstr("groups of 2 and of 1 devices"));
  EXPECT_THAT(error(Request(gather, {{0, 1}}, -8), config), HasSubstr("negative size"));
  configs::Config two = config;
  two.chip.name = "v7x";
  two.topology = configs::Topology({2, 2, 1}, {false, false, false}, 2);
  EXPECT_THAT(error(Request(gather, {{0, 1}}, 8), two),
              HasSubstr("ici.die_to_die_bytes_per_second says nothing"));
}

TEST(LoweringTest, ALargePodIsLoweredQuickly) {
  const configs::Config config = Torus({16, 16, 24}, true);
  const std::clock_t begin = std::clock();  // of this process: other work does not count
  isa::PodProgram program;
  const auto lowered = LowerCollective(
      config, Request(CollectiveKind::kAllReduce, GroupsAlong(config.topology, {0, 1, 2}), kGiB),
      program);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->bodies.size(), 1u);
  EXPECT_LT(seconds, 5) << "milliseconds are normal, a sanitizer is slower";
}

}  // namespace
}  // namespace tpusim::collectives
