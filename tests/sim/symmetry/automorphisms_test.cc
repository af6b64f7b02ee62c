// Orbits around parts that are unlike the rest, and that simulating one device of each is exact.
#include "sim/symmetry/automorphisms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/symmetry/symmetry.h"
#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests

// Rounds of a message to each neighbour side by side, each round after the last one's arrival;
// between rounds work that depends on the clock. Only towards + where `one_way`.
isa::PodProgram Neighbours(const configs::Config& config, int64_t rounds, bool one_way = false) {
  const configs::Topology& topology = config.topology;
  isa::PodProgram program;
  std::vector<int32_t> routes;
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    const int64_t extent = topology.shape()[axis];
    if (extent == 1) continue;
    for (const int64_t by : {int64_t{1}, extent - 1}) {
      if (by != 1 && one_way) continue;
      std::vector<std::pair<int32_t, int32_t>> pairs;
      for (int64_t chip = 0; chip < topology.chips(); ++chip) {
        configs::Coordinates at = topology.At(chip);
        at.at[axis] = (at.at[axis] + by) % extent;
        pairs.emplace_back(chip, topology.ChipAt(at));
      }
      program.routes.push_back(RouteBetween(config, pairs));
      routes.push_back(static_cast<int32_t>(program.routes.size() - 1));
    }
  }
  isa::Body start, main;
  for (const int32_t route : routes) {
    isa::Rdma rdma;
    rdma.route = rdma.arrival_flag = route;
    rdma.bytes = Bytes(20'000);
    rdma.reduce = isa::ReduceAdd{4, 1};
    start.push_back({isa::Start{{isa::StreamKind::kCollective, route},
                                route,
                                Share(Latency(100), rdma, isa::Wait{route, 1})}});
  }
  for (int64_t round = 0; round < rounds; ++round) {
    main.insert(main.end(), start.begin(), start.end());
    for (const int32_t route : routes) main.push_back({isa::Done{route}});
    main.push_back({Compute(700)});
  }
  program.programs = {std::make_shared<const isa::Body>(std::move(main))};
  program.program_of_device.assign(static_cast<size_t>(config.devices()), 0);
  program.flags = program.tokens = static_cast<int32_t>(routes.size());
  return program;
}

int64_t NumOrbits(const configs::Config& config, const isa::PodProgram& program,
                  const Impairments& impairments) {
  const std::optional<Classes> orbits = OrbitsOf(config, program, impairments);
  return orbits ? orbits->devices.classes() : config.devices();
}

TEST(Automorphisms, AroundAStraggler) {
  const Impairments slow{.chips = {{7, 0.5}}, .links = {}};
  // Distances along each axis 0, 1, 2, in any order of the axes: 3 multichoose 3.
  const configs::Config cube = TestConfig({4, 4, 4}, {true, true, true});
  EXPECT_EQ(NumOrbits(cube, Neighbours(cube, 1), slow), 10);
  // x and y can be exchanged: 3 multichoose 2 pairs, times 4 distances along z.
  const configs::Config brick = TestConfig({4, 4, 6}, {true, true, true});
  EXPECT_EQ(NumOrbits(brick, Neighbours(brick, 1), slow), 24);
  // Messages in one direction only: axes can still be exchanged, but not turned round.
  // 4 multichoose 3.
  EXPECT_EQ(NumOrbits(cube, Neighbours(cube, 1, /*one_way=*/true), slow), 20);
}

TEST(Automorphisms, AroundADegradedLink) {
  // The link marks a direction of x; y and z can be turned round and exchanged: 4 x 6.
  const configs::Config cube = TestConfig({4, 4, 4}, {true, true, true});
  const Impairments degraded{.chips = {}, .links = {{{7, configs::Direction::kXPlus}, 0.5}}};
  EXPECT_EQ(NumOrbits(cube, Neighbours(cube, 1), degraded), 24);
  // With the way back as slow as the way there, the middle between the two is a mirror.
  const Impairments both{
      .chips = {},
      .links = {{{0, configs::Direction::kXPlus}, 0.5}, {{1, configs::Direction::kXMinus}, 0.5}}};
  EXPECT_EQ(NumOrbits(cube, Neighbours(cube, 1), both), 12);
}

TEST(Automorphisms, AMeshHasItsMirrorImages) {
  const configs::Config mesh = TestConfig({4, 2, 1});
  EXPECT_EQ(NumOrbits(mesh, Neighbours(mesh, 1), {}), 2);
}

TEST(Automorphisms, ProgramsThatDifferKeepDevicesApart) {
  const configs::Config line = TestConfig({4, 1, 1});
  isa::PodProgram program =
      MakeProgram({Share(Compute(1)), Share(Compute(2)), Share(Compute(2)), Share(Compute(1))});
  EXPECT_EQ(NumOrbits(line, program, {}), 2);  // equal bodies, whatever their numbers
  program = MakeProgram({Share(Compute(1)), Share(Compute(2)), Share(Compute(2)), Share()});
  EXPECT_EQ(NumOrbits(line, program, {}), 4);
}

// Simulating one device of each orbit gives every device's times and every link's bytes.
TEST(Automorphisms, OrbitsAreExact) {
  std::mt19937 random(3);
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  const std::vector<configs::Config> slices = {TestConfig({4, 4, 4}, {true, true, true}),
                                               TestConfig({8, 8, 1}, {true, true, false}),
                                               TestConfig({4, 4, 1}),
                                               TestConfig({5, 5, 1}, {true, true, false}),
                                               TestConfig({3, 3, 3}, {true, true, true}),
                                               TestConfig({4, 4, 2}, {true, true, false})};
  for (int i = 0; i < 60; ++i) {
    const configs::Config& config = slices[i % slices.size()];
    const isa::PodProgram program = Neighbours(config, 1 + pick(4), pick(4) == 0);
    SimulationOptions options;
    if (pick(3) > 0) options.impairments.chips.push_back({pick(config.devices()), 0.5});
    const std::vector<configs::Link> links = config.topology.AllLinks();
    for (int64_t l = pick(3); l > 0; --l) {
      options.impairments.links.push_back({links[pick(static_cast<int64_t>(links.size()))], 0.5});
    }
    const std::string what = fmt::format("case {} on {}", i, config.devices());
    const auto folded = Simulate(config, program, options);
    ASSERT_TRUE(folded.ok()) << what << Message(folded.status());
    options.folding = Folding::kOff;
    const auto unfolded = Simulate(config, program, options);
    ASSERT_TRUE(unfolded.ok()) << what;
    for (int64_t d = 0; d < config.devices(); ++d) {
      const DeviceTotals &a = folded->devices[d], &b = unfolded->devices[d];
      ASSERT_NEAR(a.finish.value(), b.finish.value(), 10) << what << ", device " << d;
      ASSERT_EQ(a.sent, b.sent) << what << ", device " << d;
      ASSERT_EQ(a.received, b.received) << what << ", device " << d;
      ASSERT_EQ(a.moved.hbm(), b.moved.hbm()) << what << ", device " << d;
    }
  }
}

// A recorded device is called by the names of its own routes, so orbits that rename them
// are not used for it.
TEST(Automorphisms, RecordedDevicesKeepTheirNames) {
  const configs::Config config = TestConfig({4, 4, 4}, {true, true, true});
  const isa::PodProgram program = Neighbours(config, 2);
  const Impairments slow{.chips = {{0, 0.5}}, .links = {}};
  const auto classes = [&](const std::vector<int32_t>& recorded) {
    Symmetry symmetry(config, program, slow, /*folds=*/true, recorded);
    symmetry.TryOrbits();
    return symmetry.classes().devices.classes();
  };
  EXPECT_EQ(classes({}), 10);
  EXPECT_EQ(classes({0, 1}), 10);  // the first members of their orbits
  EXPECT_EQ(classes({0, 3}), 64);  // 3 is the image of 1 in a mirror
}

}  // namespace
}  // namespace tpusim::sim
