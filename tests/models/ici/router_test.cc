// Transfers of one router; those of whole pods are in tests/sim/pod_network_test.cc.
#include "models/ici/router.h"

#include <gmock/gmock.h>

#include <vector>

#include "tests/models/ici/network_bench.h"

namespace tpusim::ici {
namespace {

using configs::Direction;
using ::testing::ElementsAre;
using Raised = testing::StubFlags::Raised;
using NetBench = testing::NetworkBench;

TEST(Router, OwnsTheLinksThatItIsGiven) {
  NetBench bench;
  EXPECT_EQ(bench.router->link(Direction::kXMinus), nullptr);
  const Link* link = bench.router->link(Direction::kXPlus);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(bench.fluid.network().Name(link->resource()), "bench.router.link_x_plus");
  EXPECT_EQ(bench.fluid.network().Capacity(link->resource()), 1e11);
}

// 1000 bytes leave in 10 ns and arrive a hop of 1 us later.
TEST(Router, ATransferArrivesAHopBehindItsLastByte) {
  NetBench bench;
  const isa::Rdma rdma = NetBench::Transfer(NetBench::kNeighbour, 1000);
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(10'000, [&] { return bench.Sent() == 1; }));
  EXPECT_TRUE(bench.HappensAt(1'010'000, [&] { return bench.Arrived() == 1; }));
  EXPECT_THAT(bench.nodes[0].flags.raised, ElementsAre(Raised{4, 1, 10'000}));
  EXPECT_THAT(bench.nodes[1].flags.raised, ElementsAre(Raised{5, 1, 1'010'000}));
  ASSERT_EQ(bench.records.size(), 1u);
  EXPECT_EQ(bench.records[0].start, Picoseconds(0));
  EXPECT_EQ(bench.records[0].end, Picoseconds(10'000));
  EXPECT_EQ(bench.records[0].arrival, Picoseconds(1'010'000));
}

// Cut-through: both links carry it at once, and only the latency grows.
TEST(Router, TwoHopsTakeTwoLatencies) {
  NetBench bench;
  const isa::Rdma rdma = NetBench::Transfer(NetBench::kFar, 1000);
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(2'010'000, [&] { return bench.Arrived(2) == 1; }));
  EXPECT_EQ(bench.router->link(Direction::kXPlus)->received(), Bytes(1000));
  EXPECT_EQ(bench.next->sent(), Bytes(1000));
}

TEST(Router, ASignalIsLatencyAlone) {
  NetBench bench;
  bench.Elaborate();
  bench.Signal(NetBench::kFar);
  EXPECT_TRUE(bench.HappensAt(2'000'000, [&] { return bench.Arrived(2) == 1; }));
  EXPECT_EQ(bench.next->sent(), Bytes(0));
}

TEST(Router, WhatOneStreamSendsOverARouteLeavesInOrder) {
  NetBench bench;
  const isa::Rdma first = NetBench::Transfer(NetBench::kNeighbour, 1000), second = first;
  bench.Elaborate();
  bench.Send(first);
  bench.Send(second);
  EXPECT_TRUE(bench.HappensAt(10'000, [&] { return bench.Sent() == 1; }));
  EXPECT_TRUE(bench.HappensAt(20'000, [&] { return bench.Sent() == 2; }));
  EXPECT_TRUE(bench.HappensAt(1'010'000, [&] { return bench.Arrived() == 1; }));
  EXPECT_TRUE(bench.HappensAt(1'020'000, [&] { return bench.Arrived() == 2; }));
}

TEST(Router, StreamsShareALink) {
  NetBench bench;
  const isa::Rdma first = NetBench::Transfer(NetBench::kNeighbour, 1000), second = first;
  bench.Elaborate();
  bench.Send(first, /*stream=*/0);
  bench.Send(second, /*stream=*/1);
  EXPECT_TRUE(bench.HappensAt(20'000, [&] { return bench.Sent() == 2; }));
}

TEST(Router, RoutesOfOneStreamShareALink) {
  NetBench bench;
  const isa::Rdma near = NetBench::Transfer(NetBench::kNeighbour, 1000);
  const isa::Rdma far = NetBench::Transfer(NetBench::kFar, 1000);
  bench.Elaborate();
  bench.Send(near);
  bench.Send(far);
  EXPECT_TRUE(bench.HappensAt(20'000, [&] { return bench.Sent() == 2; }));
}

TEST(Router, ATransferWithoutFlagsRaisesNone) {
  NetBench bench;
  isa::Rdma rdma = NetBench::Transfer(NetBench::kNeighbour, 1000);
  rdma.arrival_flag = rdma.sent_flag = -1;
  bench.Elaborate();
  bench.Send(rdma);
  bench.RunOut();
  EXPECT_EQ(events::Now(), Picoseconds(1'010'000));  // until everything has arrived
  EXPECT_EQ(bench.Sent() + bench.Arrived(), 0u);
}

// The receiver's HBM gives 2e10 B/s to what is written: 50 ps a byte.
TEST(Router, ATransferIsAsFastAsTheMemoryAtItsEnd) {
  NetBench bench;
  bench.nodes[1].hbm.served_by = bench.fluid.network().AddResource("slow", 2e10);
  isa::Rdma rdma = NetBench::Transfer(NetBench::kNeighbour, 1000);
  rdma.to = isa::MemorySpace::kHbm;
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(50'000, [&] { return bench.Sent() == 1; }));
}

// An addition reads the partial sum as well: 100 ps a byte. Behind the last byte a window of 1000
// is added and written: 1000 B are 1000 / 4096 registers, 61 ps on 4 slots, and 1000 ps.
TEST(Router, AnAdditionReadsAndWritesAndDrains) {
  NetBench bench;
  bench.nodes[1].hbm.served_by = bench.fluid.network().AddResource("slow", 2e10);
  isa::Rdma rdma = NetBench::Transfer(NetBench::kNeighbour, 1000);
  rdma.to = isa::MemorySpace::kHbm;
  rdma.reduce = isa::ReduceAdd{};
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(100'000, [&] { return bench.Sent() == 1; }));
  EXPECT_TRUE(
      bench.HappensAt(100'000 + 1'000'000 + 61 + 1000, [&] { return bench.Arrived() == 1; }));
}

// 1 / 4096 of a register operation per byte: of 1e6 of them a second a byte takes 244.1 ps.
TEST(Router, AnAdditionIsAsFastAsTheVectorUnit) {
  NetBench bench;
  bench.nodes[1].vpu.served_by = bench.fluid.network().AddResource("few adds", 1e6);
  isa::Rdma rdma = NetBench::Transfer(NetBench::kNeighbour, 4096);
  rdma.reduce = isa::ReduceAdd{};
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(1'000'000, [&] { return bench.Sent() == 1; }));
}

// Between two devices of a chip: 10 ps a byte of the way between them, and one hop.
TEST(Router, TheOtherDeviceOfAChipIsOneHopAway) {
  NetBench bench;
  bench.nodes[0].endpoint.die_link(bench.nodes[0].die);
  const isa::Rdma rdma = NetBench::Transfer(NetBench::kSameChip, 1000);
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(10'000, [&] { return bench.Sent() == 1; }));
  EXPECT_TRUE(bench.HappensAt(1'010'000, [&] { return bench.Arrived() == 1; }));
  EXPECT_EQ(bench.router->link(Direction::kXPlus)->sent(), Bytes(0));
}

// Through PCIe and cards of 4e9 B/s, 250 ps a byte; 2 x 3 us of PCIe and 10 us between hosts.
TEST(Router, AnotherSliceIsReachedThroughTheHosts) {
  NetBench bench;
  for (int n : {0, 1})
    bench.nodes[static_cast<size_t>(n)].endpoint.nic(bench.nodes[static_cast<size_t>(n)].nic);
  const isa::Rdma rdma = NetBench::Transfer(NetBench::kOtherSlice, 1000);
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(250'000, [&] { return bench.Sent() == 1; }));
  EXPECT_TRUE(bench.HappensAt(16'250'000, [&] { return bench.Arrived() == 1; }));
  EXPECT_EQ(bench.nodes[0].nic.sent, Bytes(1000));
  EXPECT_EQ(bench.nodes[1].nic.received, Bytes(1000));
}

// ---- Transfers that stand for several (models/ici/fabric.h) -----------------

constexpr configs::Link kFirst{0, Direction::kXPlus};

// Two equal transfers cross the link: half of it each, and twice the bytes.
TEST(Router, ALinkCarriesAllEqualTransfers) {
  NetBench bench;
  const int32_t route = bench.AddRoute({.peer = 1, .links = {kFirst}},
                                       NetBench::PathTo(1, {{.link = 0, .flows = 2}}));
  const isa::Rdma rdma = NetBench::Transfer(route, 1000);
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(20'000, [&] { return bench.Sent() == 1; }));
  EXPECT_EQ(bench.router->link(Direction::kXPlus)->sent(), Bytes(2000));
}

// Three of them reach each receiver, whose HBM gives 2e10 B/s: 150 ps a byte.
TEST(Router, AReceiverHasItsShareOfThem) {
  NetBench bench;
  bench.nodes[1].hbm.served_by = bench.fluid.network().AddResource("slow", 2e10);
  Path path = NetBench::PathTo(1, {{.link = 0}});
  path.receivers[0].share = 3;
  isa::Rdma rdma = NetBench::Transfer(bench.AddRoute({.peer = 1, .links = {kFirst}}, path), 1000);
  rdma.to = isa::MemorySpace::kHbm;
  bench.Elaborate();
  bench.Send(rdma);
  EXPECT_TRUE(bench.HappensAt(150'000, [&] { return bench.Sent() == 1; }));
}

// The receiver calls flag 5 by another name, and each transfer is two of those that reach it.
TEST(Router, ArrivalsAreCountedAsTheReceiverCountsThem) {
  NetBench bench;
  const std::vector<int32_t> names = {0, 1, 2, 3, 4, 7};
  Path path = NetBench::PathTo(1, {{.link = 0}});
  path.arrivals[0].names = &names;
  path.arrivals[0].count = 2;
  const isa::Rdma rdma =
      NetBench::Transfer(bench.AddRoute({.peer = 1, .links = {kFirst}}, path), 1000);
  bench.Elaborate();
  bench.Send(rdma);
  bench.RunOut();
  EXPECT_THAT(bench.nodes[1].flags.raised, ElementsAre(Raised{7, 2, 1'010'000}));
}

// One of two classes of senders has sent nothing.
TEST(Router, AJointArrivalWaitsForAllItsSenders) {
  NetBench bench;
  Path path = NetBench::PathTo(1, {{.link = 0}});
  path.arrivals[0].senders = 2;
  const isa::Rdma rdma =
      NetBench::Transfer(bench.AddRoute({.peer = 1, .links = {kFirst}}, path), 1000);
  bench.Elaborate();
  bench.Send(rdma);
  bench.RunOut();
  EXPECT_EQ(bench.Sent(), 1u);
  EXPECT_EQ(bench.Arrived(), 0u);
}

struct Flights : FlightListener {
  std::vector<int64_t> begun, ended;
  void FlightBegins(int32_t, int32_t) override { begun.push_back(testing::NowPs()); }
  void FlightEnds(int32_t, int32_t) override { ended.push_back(testing::NowPs()); }
};

// From when it leaves, not from its issue.
TEST(Router, AFlightIsFromTheFirstByteToTheLast) {
  NetBench bench;
  Flights flights;
  bench.fabric.SetFlightListener(&flights);
  const isa::Rdma first = NetBench::Transfer(NetBench::kNeighbour, 1000), second = first;
  bench.Elaborate();
  bench.Send(first);
  bench.Send(second);
  bench.RunOut();
  EXPECT_THAT(flights.begun, ElementsAre(0, 10'000));
  EXPECT_THAT(flights.ended, ElementsAre(10'000, 20'000));
}

TEST(Router, WaysThatThereAreNotStopTheMachine) {
  NetBench bench;
  const isa::Rdma beside = NetBench::Transfer(NetBench::kSameChip, 1000);
  const isa::Rdma away = NetBench::Transfer(NetBench::kOtherSlice, 1000);
  isa::Rdma added = NetBench::Transfer(NetBench::kNeighbour, 1000);
  added.reduce = isa::ReduceAdd{.sparse_core = true};
  bench.Elaborate();
  EXPECT_DEATH(bench.Send(beside), "a chip of one device has no way to another");
  EXPECT_DEATH(bench.Send(away), "a single slice has no data-centre network");
  EXPECT_DEATH(bench.Send(added), "there is no SparseCore to add on");
}

}  // namespace
}  // namespace tpusim::ici
