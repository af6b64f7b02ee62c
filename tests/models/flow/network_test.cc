// Flows in time: what starts, what ends when, and what the counters say. Every
// test opens with its system of inequalities and the times worked out by hand.
#include "models/flow/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "models/steady/state.h"
#include "tests/models/flow/no_limit.h"

namespace tpusim::flow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Picoseconds kStart(0);

// Runs until nothing moves: (tag, picosecond) of every completion.
std::vector<std::pair<uint64_t, int64_t>> Drain(Network& net) {
  std::vector<std::pair<uint64_t, int64_t>> result;
  while (auto t = net.NextCompletion()) {
    for (const Completed& done : net.Advance(*t)) {
      result.push_back({done.tag, done.time.value()});
    }
  }
  return result;
}

TEST(Network, AFlowAloneTakesExactlyTheTransferTime) {
  // a <= 819e9: B bytes take B / 819e9 seconds, rounded like TransferTime:
  // 1,000,000 B -> 1221001.221 -> 1221001 ps; 4096 B -> 5001.22 -> 5001 ps.
  for (const int64_t bytes : {1, 2, 512, 4096, 1'000'000, 123'456'789}) {
    Network net;
    const ResourceId hbm = net.AddResource("hbm", BytesPerSecond(819e9));
    const Picoseconds start(777);
    net.Start(start, {static_cast<double>(bytes), kInf, {{hbm, 1}}, 1});
    EXPECT_EQ(net.NextCompletion(), start + TransferTime(Bytes(bytes), BytesPerSecond(819e9)));
  }
  Network net;
  net.Start(kStart, {1e6, 819e9, {}, 1});
  EXPECT_THAT(Drain(net), ElementsAre(std::pair(1, 1221001)));
}

TEST(Network, AFlowTakesAtLeastOnePicosecondAndNothingTakesNone) {
  // 0.001 B at 1e12 B/s would be 0.001 ps; 0 B completes where it starts.
  Network net;
  const ResourceId link = net.AddResource("link", 1e12);
  net.Start(Picoseconds(5), {0.001, kInf, {{link, 1}}, 1});
  const FlowId nothing = net.Start(Picoseconds(5), {0, kInf, {{link, 1}}, 2});
  EXPECT_FALSE(net.IsActive(nothing));
  EXPECT_THAT(Drain(net), ElementsAre(std::pair(2, 5), std::pair(1, 6)));
  EXPECT_EQ(net.active_flows(), 0);
}

TEST(Network, TwoFlowsShareAndTheLongerOneSpeedsUp) {
  // a + b <= 1 B/ps. Amounts 1000 and 3000.
  // Both at 1/2: a ends at 2000 with b at 1000 of 3000; b alone: 2000 more at 1.
  Network net;
  const ResourceId link = net.AddResource("link", 1e12);
  const FlowId a = net.Start(kStart, {1000, kInf, {{link, 1}}, 1});
  const FlowId b = net.Start(kStart, {3000, kInf, {{link, 1}}, 2});
  EXPECT_DOUBLE_EQ(net.Rate(a), 0.5e12);
  EXPECT_DOUBLE_EQ(net.Rate(b), 0.5e12);
  EXPECT_DOUBLE_EQ(net.Rate(link), 1e12);
  EXPECT_THAT(Drain(net), ElementsAre(std::pair(1, 2000), std::pair(2, 4000)));
  EXPECT_DOUBLE_EQ(net.Carried(link), 4000);
  EXPECT_EQ(net.CheckConservation(), "");
}

TEST(Network, PiecewiseCompletionToThePicosecond) {
  // One link, 0.1 B/ps. a: 1000 B from 0. b: 300 B from 2345. c: 100 B from 4000.
  //   0 ..2345  a alone at 0.1            a has moved 234.5
  //   2345..4000  a, b at 0.05: 1655 ps   82.75 each    a 317.25, b  82.75
  //   4000..7000  a, b, c at 0.1/3; c needs 3000 ps     a 417.25, b 182.75, c ends at 7000
  //   7000..9345  a, b at 0.05; b needs 117.25 / 0.05 = 2345 -> ends at 9345, a 534.5
  //   9345..      a alone: 465.5 / 0.1 = 4655 -> ends at 14000 = 1400 B / 0.1.
  Network net;
  const ResourceId link = net.AddResource("link", 0.1e12);
  net.Start(kStart, {1000, kInf, {{link, 1}}, 1});
  net.Start(Picoseconds(2345), {300, kInf, {{link, 1}}, 2});
  const FlowId c = net.Start(Picoseconds(4000), {100, kInf, {{link, 1}}, 3});
  EXPECT_NEAR(net.Rate(c), 1e11 / 3, 1e-3);
  EXPECT_THAT(Drain(net), ElementsAre(std::pair(3, 7000), std::pair(2, 9345), std::pair(1, 14000)));
}

TEST(Network, AdvanceMayJumpOverSeveralCompletions) {
  // As TwoFlowsShare..., but looked at only at 10000: the intermediate instant
  // 2000 must still be solved, and times are when it happened, not when asked.
  Network net;
  const ResourceId link = net.AddResource("link", 1e12);
  net.Start(kStart, {1000, kInf, {{link, 1}}, 1});
  net.Start(kStart, {3000, kInf, {{link, 1}}, 2});
  std::vector<std::tuple<uint64_t, int64_t>> done;
  for (const Completed& c : net.Advance(Picoseconds(10000))) {
    done.push_back({c.tag, c.time.value()});
  }
  EXPECT_THAT(done, ElementsAre(std::tuple(1, 2000), std::tuple(2, 4000)));
  EXPECT_EQ(net.now().value(), 10000);
  EXPECT_DOUBLE_EQ(net.Carried(link), 4000);
  EXPECT_THAT(net.Advance(Picoseconds(10000)), IsEmpty());
}

TEST(Network, CompletionsOfOneInstantComeInStartOrder) {
  // Three flows of 100 B, each alone on 0.1 B/ps: all end at 1000.
  Network net;
  for (const uint64_t tag : {30, 10, 20}) {
    const ResourceId link = net.AddResource("link", 0.1e12);
    net.Start(kStart, {100, kInf, {{link, 1}}, tag});
  }
  EXPECT_THAT(Drain(net),
              ElementsAre(std::pair(30, 1000), std::pair(10, 1000), std::pair(20, 1000)));
}

TEST(Network, MemorySharedByACopyAndACappedLinkFlow) {
  // hbm:  2 copy + link <= 800 (read and write of each byte copied)   B/ns
  // ici:           link <= 50
  // link = 50 (its cap is below the fair share 800 / 3), copy = 750 / 2 = 375.
  // copy of 37500 B: 100 ns. link of 50000 B: 1000 ns, never slowed down.
  Network net;
  const ResourceId hbm = net.AddResource("hbm", 800e9);
  const ResourceId ici = net.AddResource("ici", 50e9);
  const FlowId copy = net.Start(kStart, {37500, kInf, {{hbm, 1}, {hbm, 1}}, 1});
  const FlowId link = net.Start(kStart, {50000, kInf, {{ici, 1}, {hbm, 1}}, 2});
  EXPECT_DOUBLE_EQ(net.Rate(copy), 375e9);
  EXPECT_DOUBLE_EQ(net.Rate(link), 50e9);
  EXPECT_DOUBLE_EQ(net.Rate(hbm), 800e9);
  EXPECT_THAT(Drain(net), ElementsAre(std::pair(1, 100'000), std::pair(2, 1'000'000)));
  EXPECT_DOUBLE_EQ(net.Carried(hbm), 2 * 37500 + 50000);
  EXPECT_DOUBLE_EQ(net.Carried(ici), 50000);
  EXPECT_EQ(net.CheckConservation(), "");
}

TEST(Network, ALaterStartSlowsDownOnlyItsOwnComponent) {
  // Two separate links of 1 B/ps with 2 flows each; a third flow on the second.
  // First solve: all 4 flows. The third flow: 3 flows of link 1.
  Network net;
  const ResourceId link0 = net.AddResource("link0", 1e12);
  const ResourceId link1 = net.AddResource("link1", 1e12);
  const FlowId a = net.Start(kStart, {1000, kInf, {{link0, 1}}, 1});
  net.Start(kStart, {1000, kInf, {{link0, 1}}, 2});
  net.Start(kStart, {1000, kInf, {{link1, 1}}, 3});
  net.Start(kStart, {1000, kInf, {{link1, 1}}, 4});
  net.Solve(kStart);
  EXPECT_EQ(net.statistics().solves, 1);
  EXPECT_EQ(net.statistics().flows_solved, 4);
  const FlowId e = net.Start(Picoseconds(10), {1000, kInf, {{link1, 1}}, 5});
  net.Solve(Picoseconds(10));
  EXPECT_EQ(net.statistics().solves, 2);
  EXPECT_EQ(net.statistics().flows_solved, 7);
  EXPECT_DOUBLE_EQ(net.Rate(a), 0.5e12);
  EXPECT_NEAR(net.Rate(e), 1e12 / 3, 1e-2);
  net.Solve(Picoseconds(10));  // nothing changed
  EXPECT_EQ(net.statistics().solves, 2);
}

TEST(Network, AChangeIsSolvedOnlyAsFarAsItReaches) {
  // A ring of 64 memories of 100 B/ps. Each sends to the next over a link of 20 and
  // has a stream of its own, which gets what is left: 100 - 20 - 20 = 60. All memories
  // are full, so all 128 flows hang together. One more stream on memory 7 shares its
  // 60: the two there get 30, and no other changes; solved are the four flows on
  // memory 7.
  Network net;
  std::vector<ResourceId> memories, links;
  for (int i = 0; i < 64; ++i) {
    memories.push_back(net.AddResource("memory", 100e12));
    links.push_back(net.AddResource("link", 20e12));
  }
  std::vector<FlowId> streams, sends;
  for (int i = 0; i < 64; ++i) {
    streams.push_back(net.Start(kStart, {1e9, kInf, {{memories[i], 1}}, 0}));
    const int next = (i + 1) % 64;
    sends.push_back(
        net.Start(kStart, {1e9, kInf, {{memories[i], 1}, {links[i], 1}, {memories[next], 1}}, 0}));
  }
  net.Solve(kStart);
  EXPECT_DOUBLE_EQ(net.Rate(streams[7]), 60e12);
  const uint64_t before = net.statistics().flows_solved;
  const FlowId more = net.Start(Picoseconds(5), {1e9, kInf, {{memories[7], 1}}, 0});
  net.Solve(Picoseconds(5));
  EXPECT_EQ(net.statistics().flows_solved - before, 4);
  EXPECT_DOUBLE_EQ(net.Rate(more), 30e12);
  EXPECT_DOUBLE_EQ(net.Rate(streams[7]), 30e12);
  EXPECT_DOUBLE_EQ(net.Rate(sends[7]), 20e12);
  EXPECT_DOUBLE_EQ(net.Rate(streams[8]), 60e12);
  // Four more: eight flows share 100, 12.5 each, less than a link. Memories 6 and 8
  // get back 7.5 each for their streams: 67.5.
  for (int i = 0; i < 4; ++i) net.Start(Picoseconds(6), {1e9, kInf, {{memories[7], 1}}, 0});
  EXPECT_DOUBLE_EQ(net.Rate(more), 12.5e12);
  EXPECT_DOUBLE_EQ(net.Rate(sends[6]), 12.5e12);
  EXPECT_DOUBLE_EQ(net.Rate(sends[7]), 12.5e12);
  EXPECT_DOUBLE_EQ(net.Rate(streams[6]), 67.5e12);
  EXPECT_DOUBLE_EQ(net.Rate(streams[8]), 67.5e12);
  EXPECT_DOUBLE_EQ(net.Rate(streams[9]), 60e12);
}

TEST(Network, AResourceThatCannotBeFilledCouplesNothing) {
  // hbm: a + b + c + d <= 819, each on a link of 45: 4 * 45 = 180 < 819.
  // When one more pair starts, only it is solved.
  Network net;
  const ResourceId hbm = net.AddResource("hbm", 819e9);
  std::vector<ResourceId> links;
  for (int i = 0; i < 5; ++i) links.push_back(net.AddResource("link", 45e9));
  for (int i = 0; i < 4; ++i) net.Start(kStart, {4500, kInf, {{links[i], 1}, {hbm, 1}}, 0});
  net.Solve(kStart);
  EXPECT_EQ(net.statistics().flows_solved, 4);
  net.Start(Picoseconds(1), {450, kInf, {{links[4], 1}, {hbm, 1}}, 7});
  net.Solve(Picoseconds(1));
  EXPECT_EQ(net.statistics().flows_solved, 5);
  EXPECT_DOUBLE_EQ(net.Rate(hbm), 5 * 45e9);
  // Its end changes no other either.
  EXPECT_EQ(net.Advance(Picoseconds(10'001)).size(), 1);
  net.Solve(Picoseconds(10'001));
  EXPECT_EQ(net.statistics().flows_solved, 5);
}

TEST(Network, BecomingFullAndNoLongerFullBothReachTheOthers) {
  // m: a + b <= 1 B/ps, a <= 0.6: at first a alone = 0.6 (m is not full).
  // At 1000 b (cap 0.6, 600 B) starts: 1.2 > 1, so a = b = 0.5. b ends at
  // 1000 + 1200 = 2200. a has moved 600 + 600 = 1200 of 1800; the last 600 at
  // 0.6 again: ends at 2200 + 1000 = 3200.
  Network net;
  const ResourceId m = net.AddResource("m", 1e12);
  const FlowId a = net.Start(kStart, {1800, 0.6e12, {{m, 1}}, 1});
  EXPECT_EQ(net.NextCompletion()->value(), 3000);
  net.Start(Picoseconds(1000), {600, 0.6e12, {{m, 1}}, 2});
  EXPECT_DOUBLE_EQ(net.Rate(a), 0.5e12);
  EXPECT_NEAR(net.Remaining(a), 1200, 1e-9);
  EXPECT_THAT(Drain(net), ElementsAre(std::pair(2, 2200), std::pair(1, 3200)));
}

TEST(Network, AReplacementAtTheSameInstantChangesNoOtherRate) {
  // a + b <= 1, b ends at 200 and c takes its place at 200: a stays at 1/2, so
  // its completion stays too: 1000 / 0.5 = 2000.
  Network net;
  const ResourceId link = net.AddResource("link", 1e12);
  const FlowId a = net.Start(kStart, {1000, kInf, {{link, 1}}, 1});
  net.Start(kStart, {100, kInf, {{link, 1}}, 2});
  ASSERT_EQ(net.NextCompletion()->value(), 200);
  const uint64_t changes = net.statistics().rate_changes;  // a and b
  ASSERT_EQ(net.Advance(Picoseconds(200)).size(), 1);
  net.Start(Picoseconds(200), {5000, kInf, {{link, 1}}, 3});
  EXPECT_DOUBLE_EQ(net.Rate(a), 0.5e12);
  EXPECT_EQ(net.statistics().rate_changes, changes + 1);  // c only
  EXPECT_EQ(net.statistics().solves, 2);
  EXPECT_EQ(net.NextCompletion()->value(), 2000);
}

TEST(Network, ObserverSeesEachChangeOnce) {
  // As TwoFlowsShare, with a second link used by b only (weight 2):
  //   0: link = 1, side = 2 * 0.5 = 1;  2000: link stays 1 (not reported), side = 2;
  //   4000: both 0. Two starts at 0 are one change.
  Network net;
  const ResourceId link = net.AddResource("link", 1e12);
  const ResourceId side = net.AddResource("side", 4e12);
  std::vector<std::tuple<uint32_t, int64_t, double>> seen;
  net.SetRateObserver([&](ResourceId id, Picoseconds t, double rate) {
    seen.push_back({id.value, t.value(), rate});
  });
  net.Start(kStart, {1000, kInf, {{link, 1}}, 1});
  net.Start(kStart, {3000, kInf, {{side, 2}, {link, 1}}, 2});
  Drain(net);
  EXPECT_THAT(seen, ElementsAre(std::tuple(link.value, 0, 1e12), std::tuple(side.value, 0, 1e12),
                                std::tuple(side.value, 2000, 2e12), std::tuple(link.value, 4000, 0),
                                std::tuple(side.value, 4000, 0)));
}

TEST(Network, OneFlowWithMultiplicityIsSeveralFlows) {
  // Four flows of 1000 B on 0.1 B/ps, or one that consumes 4 units per byte:
  // 0.025 B/ps each, 40000 ps, 4000 units carried.
  Network unfolded, folded;
  const ResourceId u = unfolded.AddResource("link", 0.1e12);
  const ResourceId f = folded.AddResource("link", 0.1e12);
  for (int i = 0; i < 4; ++i) unfolded.Start(kStart, {1000, kInf, {{u, 1}}, 1});
  folded.Start(kStart, {1000, kInf, {{f, 4}}, 1});
  EXPECT_THAT(Drain(unfolded), ::testing::Each(std::pair<uint64_t, int64_t>(1, 40000)));
  EXPECT_THAT(Drain(folded), ElementsAre(std::pair(1, 40000)));
  EXPECT_DOUBLE_EQ(unfolded.Carried(u), 4000);
  EXPECT_DOUBLE_EQ(folded.Carried(f), 4000);
}

TEST(Network, TellsHowLongAMemoryLimitedAFlow) {
  // a <= 1 on the link, a + b <= 1.5 in the memory, b <= 1 by itself.
  // Together both go at 0.75: the memory limits them. b is done with 750 B at 1000 ps; a has
  // 2250 of 3000 to go, at 1 by the link: 3250 ps.
  Network net;
  const ResourceId link = net.AddResource("link", 1e12);
  const ResourceId memory = net.AddResource("memory", 1.5e12);
  net.TimeLimits(memory);
  net.Start(kStart, {3000, kInf, {{link, 1}, {memory, 1}}, 1});
  net.Start(kStart, {750, 1e12, {{memory, 1}}, 2});
  std::vector<std::tuple<uint64_t, int64_t, int64_t>> ends;
  while (auto t = net.NextCompletion()) {
    for (const Completed& done : net.Advance(*t)) {
      ends.emplace_back(done.tag, done.time.value(), done.limited.value());
    }
  }
  EXPECT_THAT(ends, ElementsAre(std::tuple(2, 1000, 1000), std::tuple(1, 3250, 1000)));
}

TEST(Network, OfTwoThatLimitAFlowTheFirstOnItsWayDoes) {
  // Both allow 1 B/ps.
  for (const bool memory_first : {false, true}) {
    Network net;
    const ResourceId link = net.AddResource("link", 1e12);
    const ResourceId memory = net.AddResource("memory", 1e12);
    net.TimeLimits(memory);
    const std::vector<ResourceUse> uses = memory_first
                                              ? std::vector<ResourceUse>{{memory, 1}, {link, 1}}
                                              : std::vector<ResourceUse>{{link, 1}, {memory, 1}};
    net.Start(kStart, {1000, kInf, uses, 1});
    EXPECT_EQ(net.Advance(Picoseconds(1000)).front().limited.value(), memory_first ? 1000 : 0);
  }
}

// Two of 5000 B at 1 B/ps together take 10,000 ps each, 5000 ps alone; what is on the other resource
// does not count.
TEST(Network, SharingIsTheTimeThatOthersTook) {
  Network net;
  const ResourceId link = net.AddResource("link", 1e12), memory = net.AddResource("memory", 1e12);
  net.CountSharing(link);
  EXPECT_EQ(net.statistics().Sharing(), 0);
  net.Start(Picoseconds(0), {5000, kInf, {{memory, 1}}, 1});
  net.Start(Picoseconds(0), {5000, kInf, {{memory, 1}}, 2});
  net.Start(Picoseconds(0), {5000, kInf, {{link, 1}}, 3});
  Drain(net);
  EXPECT_EQ(net.statistics().Sharing(), 0);
  const Picoseconds later(50'000);
  net.Start(later, {5000, kInf, {{link, 1}}, 4});
  net.Start(later, {5000, kInf, {{link, 1}}, 5});
  Drain(net);
  // 15,000 of 25,000 ps alone.
  EXPECT_DOUBLE_EQ(net.statistics().Sharing(), 0.4);
}

TEST(Network, SlotsAreReusedButIdsAreNot) {
  Network net;
  const ResourceId link = net.AddResource("link", 1e12);
  const FlowId first = net.Start(kStart, {10, kInf, {{link, 1}}, 1});
  EXPECT_TRUE(net.IsActive(first));
  EXPECT_EQ(net.Advance(Picoseconds(10)).front().id, first);
  const FlowId second = net.Start(Picoseconds(10), {10, kInf, {{link, 1}}, 2});
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_NE(second, first);
  EXPECT_FALSE(net.IsActive(first));
  EXPECT_TRUE(net.IsActive(second));
}

TEST(Network, SymmetricRingsStayInStepToThePicosecond) {
  // A ring of 64 chips, both directions: flow i uses hbm i, link i, hbm i + 1.
  // hbm: 4 flows * 45 = 180 <= 100: full at 25 B/ns each. 1e6 B: 40 us. All 128
  // flows end at one instant, and the next round is the same.
  Network net;
  std::vector<ResourceId> hbm, plus, minus;
  for (int i = 0; i < 64; ++i) {
    hbm.push_back(net.AddResource("hbm", 100e9));
    plus.push_back(net.AddResource("x+", 45e9));
    minus.push_back(net.AddResource("x-", 45e9));
  }
  for (int round = 0; round < 3; ++round) {
    const Picoseconds start = Microseconds(40) * round;
    for (int i = 0; i < 64; ++i) {
      const int next = (i + 1) % 64, previous = (i + 63) % 64;
      net.Start(start, {1e6, kInf, {{hbm[i], 1}, {plus[i], 1}, {hbm[next], 1}}, 1});
      net.Start(start, {1e6, kInf, {{hbm[i], 1}, {minus[i], 1}, {hbm[previous], 1}}, 2});
    }
    ASSERT_EQ(net.NextCompletion(), start + Microseconds(40));
    EXPECT_EQ(net.Advance(start + Microseconds(40)).size(), 128);
  }
  EXPECT_EQ(net.CheckConservation(), "");
}

TEST(NetworkDeathTest, BrokenCallsAreCaught) {
  Network net;
  const ResourceId link = net.AddResource("link", 1e12);
  net.Solve(Picoseconds(100));
  EXPECT_DEATH(net.Start(Picoseconds(99), {1, kInf, {{link, 1}}, 1}), "time runs backwards");
  EXPECT_DEATH(net.Start(Picoseconds(100), {1, kInf, {}, 1}), "infinitely fast");
  EXPECT_DEATH(net.Start(Picoseconds(100), {-1, kInf, {{link, 1}}, 1}), "amount of a flow is -1");
  EXPECT_DEATH(net.Start(Picoseconds(100), {1, kInf, {{link, -2}}, 1}), "weight on link is -2");
}

// One of two devices that have nothing to do with each other is ahead by 2 ps, then the other one.
// States that differ by no more than that recur, whichever transfer was the first; flows that share
// a link are told apart by what they are for, too.
TEST(Network, StatesRecurInWhichIndependentFlowsStartInAnotherOrder) {
  Network net;
  const ResourceId left = net.AddResource("left", 1e12), right = net.AddResource("right", 1e12);
  const auto state_at = [&net](int64_t now) {
    auto reader = steady::StateVisitor::Read(Picoseconds(now));
    net.Visit(
        Picoseconds(now), [&](uint64_t tag) { reader.Same(static_cast<int64_t>(tag)); },
        [](uint64_t tag) { return static_cast<int64_t>(tag); }, reader);
    return reader.TakeSnapshot();
  };
  const auto pass = [&](int64_t begin, int64_t left_late, int64_t right_late) {
    for (const int64_t late : {0, 2}) {
      const Picoseconds now(begin + late);
      // Two flows of 5000 B each share 1 B/ps, so all of them end 10,000 ps later.
      for (const uint64_t tag : {1, 2}) {
        if (left_late == late) net.Start(now, {5000, kInf, {{left, 1}}, tag});
        if (right_late == late) net.Start(now, {5000, kInf, {{right, 1}}, 3 - tag});
      }
    }
    return state_at(begin + 100);
  };
  const steady::Snapshot before = pass(0, 0, 2);
  Drain(net);
  const steady::Snapshot after = pass(20'000, 2, 0);
  EXPECT_EQ(steady::FindRecurrence(before, after, Picoseconds(1)).periods, 0);
  const steady::Recurrence near = steady::FindRecurrence(before, after, Picoseconds(2));
  EXPECT_EQ(near.periods, steady::kUnlimited);
  EXPECT_FALSE(near.is_exact);
}

}  // namespace
}  // namespace tpusim::flow
