// Classes of small pods: which devices and links count as equal.
#include <gtest/gtest.h>

#include "sim/symmetry/levels.h"
#include "sim/symmetry/symmetry.h"
#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests

// Every device runs one body that sends over route 0.
isa::PodProgram Exchange(const configs::Config& config,
                         const std::vector<std::pair<int32_t, int32_t>>& pairs) {
  isa::Rdma rdma;
  rdma.bytes = Bytes(1000);
  isa::PodProgram program = MakeProgram({Share(rdma)});
  program.program_of_device.assign(static_cast<size_t>(config.devices()), 0);
  program.routes = {RouteBetween(config, pairs)};
  return program;
}

std::vector<std::pair<int32_t, int32_t>> Ring(int32_t n) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t d = 0; d < n; ++d) pairs.emplace_back(d, (d + 1) % n);
  return pairs;
}

// Told apart when all transfers of the program are under way at once.
Classes FindClasses(const configs::Config& config, const isa::PodProgram& program,
                    const Impairments& impairments) {
  Symmetry symmetry(config, program, impairments, /*folds=*/true);
  if (!symmetry.Allows(symmetry.all())) symmetry.Split(symmetry.all());
  return symmetry.classes();
}

TEST(Classes, AllChipsOfARingAreEqual) {
  const configs::Config config = TestConfig({8, 1, 1}, {true, false, false});
  const Classes classes = FindClasses(config, Exchange(config, Ring(8)), {});
  EXPECT_EQ(classes.devices.classes(), 1);
  EXPECT_EQ(classes.devices.Multiplicity(5), 8);
  EXPECT_EQ(classes.devices.Representative(5), 0);
  EXPECT_EQ(classes.links.classes(), 2);  // x+, which all send over, and the rest
  EXPECT_EQ(classes.chips.classes(), 1);
}

TEST(Classes, OnALineEveryPositionIsDifferent) {
  // 3 -> 0 goes back over all x- links, each chip at another distance from the end.
  const configs::Config config = TestConfig({4, 1, 1});
  const Classes classes = FindClasses(config, Exchange(config, Ring(4)), {});
  EXPECT_EQ(classes.devices.classes(), 4);
}

TEST(Classes, ParallelLinesAreEqual) {
  // 4 x 4 with rings along y; everybody sends along x, which is a line: four
  // classes of four.
  const configs::Config config = TestConfig({4, 4, 1}, {false, true, false});
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t y = 0; y < 4; ++y) {
    for (int32_t x = 0; x < 4; ++x) pairs.emplace_back(4 * y + x, 4 * y + (x + 1) % 4);
  }
  const Classes classes = FindClasses(config, Exchange(config, pairs), {});
  EXPECT_EQ(classes.devices.classes(), 4);
  EXPECT_EQ(classes.devices.size, std::vector<int64_t>(4, 4));
}

TEST(Classes, AStragglerSplitsARingByDistance) {
  // Messages go one way round: 8 different distances to chip 3.
  const configs::Config config = TestConfig({8, 1, 1}, {true, false, false});
  const Impairments slow{.chips = {{3, 0.5}}, .links = {}};
  const Classes classes = FindClasses(config, Exchange(config, Ring(8)), slow);
  EXPECT_EQ(classes.devices.classes(), 8);
  // Without messages only the straggler is different.
  std::vector<isa::SharedBody> distinct;
  for (int64_t d = 0; d < 8; ++d) distinct.push_back(Share(Compute(d)));
  EXPECT_EQ(FindClasses(config, MakeProgram(distinct), slow).devices.classes(), 8);
  isa::PodProgram silent = MakeProgram({Share(Compute(10))});
  silent.program_of_device.assign(8, 0);
  EXPECT_EQ(FindClasses(config, silent, slow).devices.classes(), 2);
}

TEST(Classes, ADegradedLinkSplitsThoseWhoUseIt) {
  // Pairs (0,1), (2,3), (4,5), (6,7) send to each other over one hop; the link
  // 2:x+ is degraded: chips 2 and 3 differ from the rest, and from each other.
  const configs::Config config = TestConfig({8, 1, 1});
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t d = 0; d < 8; ++d) pairs.emplace_back(d, d ^ 1);
  const isa::PodProgram program = Exchange(config, pairs);
  // Even chips send over x+, odd ones over x-, which makes no difference.
  EXPECT_EQ(FindClasses(config, program, {}).devices.classes(), 1);
  const Impairments degraded{.chips = {}, .links = {{{2, configs::Direction::kXPlus}, 0.5}}};
  const Classes classes = FindClasses(config, program, degraded);
  EXPECT_EQ(classes.devices.classes(), 3);
  EXPECT_EQ(classes.devices.Multiplicity(2), 1);
  EXPECT_EQ(classes.devices.Multiplicity(3), 1);
  EXPECT_EQ(classes.devices.Multiplicity(0), 6);
}

// Eight devices in a ring that visits the chips of a line in an order of its own: some hops
// are longer than others.
TEST(Classes, WaysOfDifferentLengthSplitUnlessApproximated) {
  const configs::Config config = TestConfig({8, 1, 1});
  // 0 2 4 6 7 5 3 1 and back: two hops each but at the ends, where it is one.
  const std::vector<int32_t> tour = {0, 2, 4, 6, 7, 5, 3, 1};
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (size_t i = 0; i < tour.size(); ++i) pairs.emplace_back(tour[i], tour[(i + 1) % tour.size()]);
  const isa::PodProgram program = Exchange(config, pairs);
  const Symmetry exact(config, program, {}, /*folds=*/true);
  // The tour looks the same after half of it, so four positions.
  EXPECT_EQ(exact.classes().devices.classes(), 4);
  EXPECT_EQ(Levels(config, program, {}).DeviceClasses(1), 1);
  SimulationOptions options;
  const Timeline alone = MustSimulate(config, program);
  options.folding = Folding::kApproximate;
  const absl::StatusOr<Timeline> together = Simulate(config, program, options);
  ASSERT_TRUE(together.ok()) << Message(together.status());
  // Two hops of 1 us count for all.
  EXPECT_EQ(together->step_time, alone.step_time);
  EXPECT_EQ(together->folding.ignored_skew, Picoseconds(0));
  EXPECT_TRUE(together->folding.is_approximate);
  EXPECT_FALSE(alone.folding.is_approximate);
}

// A transposition of 4 x 4 chips: those on the diagonal send to themselves. Beside two kinds of
// programs, whose devices receive from either.
TEST(Classes, PermutationsDoNotSplitApproximately) {
  const configs::Config config = TestConfig({4, 4, 1}, {true, true, false});
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t d = 0; d < 16; ++d) pairs.emplace_back(d, d % 4 * 4 + d / 4);
  isa::Rdma rdma;
  rdma.bytes = Bytes(1000);
  rdma.arrival_flag = 0;
  isa::PodProgram program = MakeProgram(
      {Share(Compute(100), rdma, isa::Wait{0, 1}), Share(Compute(300), rdma, isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, pairs)};
  program.program_of_device.clear();
  for (int32_t d = 0; d < 16; ++d) program.program_of_device.push_back(d % 4 == 0);
  EXPECT_GT(Symmetry(config, program, {}, /*folds=*/true).classes().devices.classes(), 2);
  SimulationOptions options;
  options.folding = Folding::kApproximate;
  const absl::StatusOr<Timeline> timeline = Simulate(config, program, options);
  ASSERT_TRUE(timeline.ok()) << Message(timeline.status());
  // By program, on the diagonal and beside it: the latter are in groups of two.
  EXPECT_EQ(timeline->folding.device_classes, 4);
  const Timeline exact = MustSimulate(config, program);
  EXPECT_GE(timeline->step_time, exact.step_time);
  // All go four hops of 1 us, and column 0, which begins after 300 ns, needs 10 ns on links of its
  // own.
  EXPECT_EQ(timeline->step_time, Nanoseconds(4310));
}

// On a ring of six, every third chip sends 3,000 bytes and the others 1,000: of those others half
// receive 3,000 and half 1,000, so the class counts 2,000 per chip, in HBM traffic and in the
// report's bytes.
TEST(Classes, AnApproximationAccountsForAllBytesOfUnlikeSenders) {
  const configs::Config config = TestConfig({6, 1, 1}, {true, false, false});
  isa::Rdma few;
  few.bytes = Bytes(1000);
  few.arrival_flag = 0;
  isa::Rdma many = few;
  many.bytes = Bytes(3000);
  isa::PodProgram program;
  const int32_t op = AddOp(program, "permute", /*collective=*/true);
  const isa::Label begin{op, true}, end{op, false};
  program.programs = {Share(begin, few, isa::Wait{0, 1}, end),
                      Share(begin, many, isa::Wait{0, 1}, end)};
  program.program_of_device = {1, 0, 0, 1, 0, 0};
  program.flags = 1;
  program.routes = {RouteBetween(config, Ring(6))};
  SimulationOptions options;
  options.folding = Folding::kApproximate;
  const absl::StatusOr<Timeline> timeline = Simulate(config, program, options);
  ASSERT_TRUE(timeline.ok()) << Message(timeline.status());
  ASSERT_EQ(timeline->folding.device_classes, 2);
  EXPECT_EQ(timeline->devices[1].moved.hbm(), Bytes(1000 + 2000));
  EXPECT_EQ(timeline->devices[0].moved.hbm(), Bytes(3000 + 1000));
  EXPECT_EQ(timeline->ops[op].hbm_bytes, timeline->devices[timeline->critical_device].moved.hbm());
}

// A relay from chip 3 down to chip 0. The approximation first puts chips 1 and 2, which run the
// same program, into one class, whose representative would wait for itself; so it retreats.
TEST(Classes, AnApproximationRetreatsFromACircleOfWaits) {
  const configs::Config config = TestConfig({4, 1, 1});
  isa::Rdma rdma;
  rdma.bytes = Bytes(1000);
  rdma.arrival_flag = 0;
  isa::PodProgram program =
      MakeProgram({Share(rdma), Share(isa::Wait{0, 1}, rdma), Share(isa::Wait{0, 1})});
  program.program_of_device = {2, 1, 1, 0};
  program.routes = {RouteBetween(config, {{3, 2}, {2, 1}, {1, 0}})};
  SimulationOptions options;
  options.folding = Folding::kApproximate;
  const absl::StatusOr<Timeline> timeline = Simulate(config, program, options);
  ASSERT_TRUE(timeline.ok()) << Message(timeline.status());
  EXPECT_EQ(timeline->folding.device_classes, 4);
  EXPECT_GT(timeline->folding.simulations, 1);
  EXPECT_EQ(timeline->folding.ignored_skew, Picoseconds(0));
  EXPECT_EQ(timeline->step_time, MustSimulate(config, program).step_time);
}

TEST(Classes, UnfoldedIsEverybodyAlone) {
  const configs::Config config = TestConfig({4, 2, 1});
  const isa::PodProgram program = Exchange(config, Ring(8));
  const Classes classes = Unfolded(config, program, {});
  EXPECT_EQ(classes.devices.classes(), 8);
  EXPECT_EQ(classes.chips.classes(), 8);
}

}  // namespace
}  // namespace tpusim::sim
