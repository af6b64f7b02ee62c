// Collectives that share links slow each other as max-min fairness says, to the
// picosecond. A byte takes 10 ps on a link that closes a ring and 20 ps on one that
// does not, a hop 1 us; times in comments are in microseconds. A ring of four
// gathers shards of S in two steps: the whole shard, then halves of the antipode's.
#include <gtest/gtest.h>

#include <vector>

#include "tests/sim/pod_testing.h"
#include "tests/workloads/collectives/collective_interpreter.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests
using collectives::CollectiveKind;
using collectives::CollectiveRequest;
using collectives::GroupsAlong;
using collectives::LoweredCollective;

LoweredCollective Gather(const configs::Config& config, std::vector<std::vector<int64_t>> groups,
                         int64_t shard, isa::PodProgram& program) {
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllGather;
  request.groups = std::move(groups);
  request.operand_bytes = Bytes(shard);
  return *collectives::LowerCollective(config, request, program);
}

LoweredCollective Send(const configs::Config& config, int64_t from, int64_t to, int64_t bytes,
                       isa::PodProgram& program) {
  CollectiveRequest request;
  request.kind = CollectiveKind::kPermute;
  request.pairs = {{from, to}};
  request.operand_bytes = Bytes(bytes);
  LoweredCollective lowered = *collectives::LowerCollective(config, request, program);
  // Leaves out what devices that receive nothing do: they fill in zeros.
  std::vector<int32_t> role_of_device(lowered.role_of_device->size(), -1);
  for (const int64_t device : {from, to}) {
    role_of_device[device] = (*lowered.role_of_device)[device];
  }
  lowered.role_of_device = std::make_shared<const std::vector<int32_t>>(role_of_device);
  return lowered;
}

// Every device runs what it has a part in: all at once, each on a stream of its own.
Timeline Together(const configs::Config& config, isa::PodProgram program,
                  const std::vector<LoweredCollective>& collectives) {
  program.tokens = static_cast<int32_t>(collectives.size());
  for (int64_t device = 0; device < config.devices(); ++device) {
    isa::Body body;
    for (size_t i = 0; i < collectives.size(); ++i) {
      const int32_t role = (*collectives[i].role_of_device)[device];
      if (role < 0) continue;
      const isa::StreamId stream = {isa::StreamKind::kCollective, static_cast<int32_t>(i)};
      body.push_back({isa::Start{stream, static_cast<int32_t>(i), collectives[i].bodies[role]}});
    }
    const size_t started = body.size();
    for (size_t i = 0; i < started; ++i) {
      body.push_back({isa::Done{std::get<isa::Start>(body[i].kind).token}});
    }
    program.program_of_device.push_back(static_cast<int32_t>(program.programs.size()));
    program.programs.push_back(std::make_shared<const isa::Body>(std::move(body)));
  }
  return MustSimulate(config, program);
}

configs::Config Ring(int64_t n) { return TestConfig({n, 1, 1}, {true, false, false}); }

TEST(CollectiveContention, AloneEachTakesItsClosedForm) {
  const configs::Config config = Ring(4);
  isa::PodProgram program;
  const auto gather = Gather(config, {{0, 1, 2, 3}}, 2'000'000, program);
  // 20 + 1 + 10 + 1.
  EXPECT_EQ(Together(config, program, {gather}).step_time, Microseconds(32));
}

TEST(CollectiveContention, TwoGathersOverOneRing) {
  const configs::Config config = Ring(4);
  isa::PodProgram program;
  const auto large = Gather(config, {{0, 1, 2, 3}}, 2'000'000, program);
  const auto small = Gather(config, {{0, 1, 2, 3}}, 1'000'000, program);
  // Half of every link each. The small one sends its shard in 20; until the next
  // step at 21 the large one has the link alone. 10 more at half, until 31: the small
  // one ends at 32. The large one has sent 1.0 + 0.1 + 0.5 MB, and sends the last
  // 0.4 MB in 4, until 35. Step two from 36: 10 + 1.
  EXPECT_EQ(Together(config, program, {large, small}).step_time, Microseconds(47));
}

TEST(CollectiveContention, GatherOverAnotherAxisDisturbsNobody) {
  const configs::Config config = TestConfig({4, 4, 1}, {true, true, false});
  isa::PodProgram program;
  const auto along_x = Gather(config, GroupsAlong(config.topology, {0}), 2'000'000, program);
  const auto along_y = Gather(config, GroupsAlong(config.topology, {1}), 1'000'000, program);
  EXPECT_EQ(Together(config, program, {along_x, along_y}).step_time, Microseconds(32));
}

TEST(CollectiveContention, InterleavedGroupsOfOneRing) {
  // Every other chip of a ring of eight: steps of two hops, through the chips of the
  // other group, so that every link carries one flow of each.
  const configs::Config config = Ring(8);
  isa::PodProgram program;
  const auto small = Gather(config, {{0, 2, 4, 6}}, 1'000'000, program);
  const auto large = Gather(config, {{1, 3, 5, 7}}, 3'000'000, program);
  const Timeline timeline = Together(config, program, {small, large});
  // Small: 20 at half the rate, 2 hops, 10, 2 hops.
  EXPECT_EQ(timeline.devices[0].finish, Microseconds(34));
  // Large: 1.0 MB until 20, 0.2 alone until 22, 0.5 until 32, the last 1.3 MB alone
  // in 13; 2 hops; 1.5 MB in 15; 2 hops. Alone it would take 49.
  EXPECT_EQ(timeline.devices[1].finish, Microseconds(64));
}

TEST(CollectiveContention, ThreeGathersShareInThirds) {
  const configs::Config config = Ring(4);
  isa::PodProgram program;
  std::vector<LoweredCollective> three;
  for (int i = 0; i < 3; ++i) {
    three.push_back(Gather(config, {{0, 1, 2, 3}}, 1'000'000, program));
  }
  // 30 + 1 + 15 + 1.
  EXPECT_EQ(Together(config, program, three).step_time, Microseconds(47));
}

// Links of a line with one, two and three crossing flows.
//
//     0 --- 1 --- 2 --- 3 --- 4 --- 5 --- 6 --- 7
//     P ---------------------------------------->    3 MB
//           Q --------------->                       2 MB
//                 R ->                               1 MB
//                                   S ->             4 MB
TEST(CollectiveContention, PermutesThatCrossDifferentlyManyOthers) {
  const configs::Config config = TestConfig({8, 1, 1});
  isa::PodProgram program;
  const auto p = Send(config, 0, 7, 3'000'000, program);
  const auto q = Send(config, 1, 4, 2'000'000, program);
  const auto r = Send(config, 2, 3, 1'000'000, program);
  const auto s = Send(config, 5, 6, 4'000'000, program);
  const Timeline timeline = Together(config, program, {p, q, r, s});
  // P, Q and R have a third of the link 2-3 each, S the two thirds that P leaves of
  // 5-6. R: 1 MB in 60, 1 hop.
  EXPECT_EQ(timeline.devices[3].finish, Microseconds(61));
  // Then P and Q have halves of 1-2, and so have P and S of 5-6. Q: the second MB in
  // 40, until 100, 3 hops.
  EXPECT_EQ(timeline.devices[4].finish, Microseconds(103));
  // S: 2 MB until 60, 1 MB until 100; P still has half of 5-6. Both send their last
  // MB in 40, until 140; 7 hops and 1.
  EXPECT_EQ(timeline.devices[7].finish, Microseconds(147));
  EXPECT_EQ(timeline.devices[6].finish, Microseconds(141));
}

}  // namespace
}  // namespace tpusim::sim
