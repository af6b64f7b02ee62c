// Several devices: signals, remote DMAs and streams beside the TensorCore, to
// the picosecond. Times in comments are in microseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A line of n chips along x.
configs::Config Line(int64_t n) { return TestConfig({n, 1, 1}); }
configs::Config Ring(int64_t n) { return TestConfig({n, 1, 1}, {true, false, false}); }

isa::Rdma Send(int32_t route, int64_t bytes, int32_t arrival_flag, int32_t sent_flag = -1) {
  isa::Rdma rdma;
  rdma.route = route;
  rdma.bytes = Bytes(bytes);
  rdma.arrival_flag = arrival_flag;
  rdma.sent_flag = sent_flag;
  return rdma;
}

constexpr int kXPlus = static_cast<int>(configs::Direction::kXPlus);
constexpr int kXMinus = static_cast<int>(configs::Direction::kXMinus);

TEST(PodNetwork, SignalsTakeAHopEach) {
  const configs::Config config = Line(3);
  // 0 signals 2 (two hops), 2 computes 0.5 and answers: 2 + 0.5 + 2.
  isa::PodProgram program = MakeProgram({Share(isa::Signal{0, 3}, isa::Wait{4, 1}), nullptr,
                                         Share(isa::Wait{3, 1}, Compute(500), isa::Signal{0, 4})});
  program.routes = {RouteBetween(config, {{0, 2}, {2, 0}})};
  const Timeline timeline = MustSimulate(config, program);
  EXPECT_EQ(timeline.devices[0].finish, Nanoseconds(4500));
  EXPECT_EQ(timeline.devices[2].finish, Nanoseconds(2500));
  EXPECT_EQ(timeline.devices[1].finish, Picoseconds(0));
  EXPECT_EQ(timeline.critical_device, 0);
}

TEST(PodNetwork, WaitsTakeWhatTheyCount) {
  // Three signals, at 0, 1 and 2 of the sender, arrive at 1, 2, 3. The first wait
  // takes two of them at 2, the second the last one at 3.
  const configs::Config config = Line(2);
  isa::PodProgram program =
      MakeProgram({Share(isa::Loop{3, Share(isa::Signal{0, 0}, Compute(1000))}),
                   Share(isa::Wait{0, 2}, Compute(100), isa::Wait{0, 1}, Compute(100))});
  program.routes = {RouteBetween(config, {{0, 1}})};
  EXPECT_EQ(MustSimulate(config, program).devices[1].finish, Nanoseconds(3100));
}

TEST(PodNetwork, OneHop) {
  // 100 kB at 20 ps a byte leave in 2; they arrive a hop later.
  const configs::Config config = Line(2);
  isa::PodProgram program =
      MakeProgram({Share(Send(0, 100'000, 0, 1), isa::Wait{1, 1}), Share(isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  const Timeline timeline = MustSimulate(config, program);
  EXPECT_EQ(timeline.devices[0].finish, Microseconds(2));
  EXPECT_EQ(timeline.devices[1].finish, Microseconds(3));
  EXPECT_EQ(timeline.devices[0].sent[kXPlus], Bytes(100'000));
  EXPECT_EQ(timeline.devices[1].received[kXPlus], Bytes(100'000));
  EXPECT_EQ(timeline.devices[1].sent[kXMinus], Bytes(0));
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(100'000));
  EXPECT_EQ(timeline.devices[1].moved.hbm(), Bytes(100'000));
  // Rdma and two waits; a flow started and ended.
  EXPECT_EQ(timeline.events, 5);
}

TEST(PodNetwork, OneStreamSendsOverOneRouteInOrder) {
  // 100 kB at 20 ps a byte leave in 2 and arrive at 3, the 50 kB behind them in 1 more, at 4.
  // Shared evenly the first would arrive at 4, too. Who waits for it computes until 9.
  const configs::Config config = Line(2);
  isa::PodProgram program = MakeProgram(
      {Share(Send(0, 100'000, 0), Send(0, 50'000, 1)), Share(isa::Wait{0, 1}, isa::Wait{1, 1})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  EXPECT_EQ(MustSimulate(config, program).devices[1].finish, Microseconds(4));
  program.programs[1] = Share(isa::Wait{0, 1}, Compute(6000));
  EXPECT_EQ(MustSimulate(config, program).devices[1].finish, Microseconds(9));
}

TEST(PodNetwork, StreamsShareALink) {
  // The same by two streams: 50 kB of each in 2, then what is left of the longer in 1. They arrive
  // at 3 and 4.
  const configs::Config config = Line(2);
  const isa::StreamId other{isa::StreamKind::kCollective, 0};
  isa::PodProgram program = MakeProgram(
      {Share(isa::Start{other, 0, Share(Send(0, 50'000, 1))}, Send(0, 100'000, 0), isa::Done{0}),
       Share(isa::Wait{1, 1}, Compute(6000))});
  program.routes = {RouteBetween(config, {{0, 1}})};
  EXPECT_EQ(MustSimulate(config, program).devices[1].finish, Microseconds(9));
  program.programs[1] = Share(isa::Wait{0, 1}, Compute(6000));
  EXPECT_EQ(MustSimulate(config, program).devices[1].finish, Microseconds(10));
}

TEST(PodNetwork, DevicesOfAChipExchangeWithoutItsLinks) {
  // 100 kB at 10 ps a byte leave each device in 1 and arrive a hop later; over the
  // link of 20 ps a byte they would take 2.
  const configs::Config config = WithDevicesPerChip(Line(2), 2);
  const isa::SharedBody both = Share(Send(0, 100'000, 0, 1), isa::Wait{0, 1}, isa::Wait{1, 1});
  isa::PodProgram program = MakeProgram({both, both, nullptr, nullptr});
  program.routes = {RouteBetween(config, {{0, 1}, {1, 0}})};
  const Timeline timeline = MustSimulate(config, program);
  EXPECT_EQ(timeline.devices[0].finish, Microseconds(2));
  EXPECT_EQ(timeline.devices[1].finish, Microseconds(2));
  EXPECT_EQ(timeline.devices[0].sent[kXPlus], Bytes(0));
  // Read at one end and written at the other, both ways.
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(200'000));
}

TEST(PodNetwork, ThreeHopsAddLatencyOnly) {
  const configs::Config config = Line(4);
  isa::PodProgram program =
      MakeProgram({Share(Send(0, 100'000, 0)), nullptr, nullptr, Share(isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 3}})};
  const Timeline timeline = MustSimulate(config, program);
  EXPECT_EQ(timeline.devices[3].finish, Microseconds(5));
  for (int chip = 0; chip < 3; ++chip) {
    EXPECT_EQ(timeline.devices[chip].sent[kXPlus], Bytes(100'000)) << chip;
  }
}

TEST(PodNetwork, NobodyNeedsToWaitForATransferToBeCounted) {
  const configs::Config config = Line(2);
  isa::PodProgram program = MakeProgram({Share(Send(0, 100'000, -1)), nullptr});
  program.routes = {RouteBetween(config, {{0, 1}})};
  EXPECT_EQ(MustSimulate(config, program).step_time, Microseconds(3));
}

TEST(PodNetwork, TwoTransfersShareALink) {
  // 0 -> 2 and 1 -> 2 both cross 1's x+: each at half rate, 4; then two hops and
  // one.
  const configs::Config config = Line(3);
  isa::PodProgram program = MakeProgram({Share(Send(0, 100'000, 0)), Share(Send(0, 100'000, 1)),
                                         Share(isa::Wait{1, 1}, isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 2}, {1, 2}})};
  const Timeline timeline = MustSimulate(config, program);
  EXPECT_EQ(timeline.devices[2].finish, Microseconds(6));
  EXPECT_EQ(timeline.devices[1].finish, Microseconds(4));  // last byte gone
  EXPECT_EQ(timeline.devices[1].sent[kXPlus], Bytes(200'000));
  EXPECT_EQ(timeline.devices[2].received[kXPlus], Bytes(200'000));
}

TEST(PodNetwork, BothDirectionsAreDifferentLinks) {
  const configs::Config config = Line(2);
  isa::PodProgram program = MakeProgram(
      {Share(Send(0, 100'000, 0), isa::Wait{0, 1}), Share(Send(0, 100'000, 0), isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 1}, {1, 0}})};
  EXPECT_EQ(MustSimulate(config, program).step_time, Microseconds(3));
}

TEST(PodNetwork, EveryDeviceOfARingDoesTheSame) {
  // All send to the right: 10 ps a byte on a wrapped axis, 1, and a hop. Five
  // rounds. One program for all.
  const configs::Config config = Ring(8);
  const isa::SharedBody body = Share(isa::Loop{5, Share(Send(0, 100'000, 0), isa::Wait{0, 1})});
  isa::PodProgram program = MakeProgram(std::vector<isa::SharedBody>(8, body));
  program.programs = {body};
  program.program_of_device.assign(8, 0);
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t d = 0; d < 8; ++d) pairs.emplace_back(d, (d + 1) % 8);
  program.routes = {RouteBetween(config, pairs)};
  const Timeline timeline = MustSimulate(config, program);
  for (const DeviceTotals& device : timeline.devices) {
    EXPECT_EQ(device.finish, Microseconds(10));
    EXPECT_EQ(device.sent[kXPlus], Bytes(500'000));
  }
  EXPECT_EQ(timeline.critical_device, 0);
  EXPECT_THAT(Representatives(program), ElementsAre(0));
}

TEST(PodNetwork, TransfersAndWindowsShareHbm) {
  // HBM of 6e10 B/s; alone the transfer runs at the link's 5e10. The kernel's
  // 30 kB window moves from 2.5 on: each gets 3e10, so it takes 1, computes until
  // 4.5. The transfer has moved 125 kB by 2.5, 30 kB until 3.5, and the other
  // 845 kB take 16.9: it leaves by 20.4 and arrives at 21.4.
  configs::Config config = Line(2);
  config.chip.hbm.bytes_per_second = BytesPerSecond(6e10);
  isa::Kernel kernel;
  kernel.windows = {Input(30'000, 0)};
  kernel.block = Compute(1000);
  isa::PodProgram program =
      MakeProgram({Share(Send(0, 1'000'000, 0), kernel, Compute(1)), Share(isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  isa::OpInfo op;
  const int32_t k = AddOp(program, "kernel");
  program.programs[0] =
      Share(Send(0, 1'000'000, 0), isa::Label{k, true}, kernel, isa::Label{k, false});
  const Timeline timeline = MustSimulate(config, program, {0});
  EXPECT_EQ(timeline.devices[1].finish, Nanoseconds(21'400));
  Picoseconds kernel_end{0};
  for (const Span& span : timeline.recording.Spans()) {
    if (span.track == Track::kTensorCore) kernel_end = span.end;
  }
  EXPECT_EQ(kernel_end, Nanoseconds(4500));
  // The link slows down while the window moves.
  std::vector<double> rates;
  for (const CounterSample& sample : timeline.recording.Samples()) {
    if (sample.counter == Counter::kLinkBandwidth && sample.lane == kXPlus) {
      rates.push_back(sample.value);
    }
  }
  EXPECT_THAT(rates, ElementsAre(5e10, 3e10, 5e10, 0));
}

TEST(PodNetwork, ReducingTransferHasATail) {
  // Leaves in 2, hop 1; the last window of 1000 B is added, 1000 B at 4096 B x
  // 4 slots a ns = 61 ps, and written, 1000 ps.
  const configs::Config config = Line(2);
  isa::Rdma send = Send(0, 100'000, 0);
  send.reduce = isa::ReduceAdd{};
  isa::PodProgram program = MakeProgram({Share(send), Share(isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  const Timeline timeline = MustSimulate(config, program);
  EXPECT_EQ(timeline.devices[1].finish.value(), 3'001'061);
  // Read and written where it is added.
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(100'000));
  EXPECT_EQ(timeline.devices[1].moved.hbm(), Bytes(200'000));
}

TEST(PodNetwork, SlowHbmSlowsAReductionTwice) {
  // The receiver's HBM of 4e10 B/s serves two bytes for each that arrives: 2e10,
  // 5 for 100 kB. Tail: 61 ps and 1000 B at 4e10 = 25000 ps.
  configs::Config config = Line(2);
  config.chip.hbm.bytes_per_second = BytesPerSecond(4e10);
  isa::Rdma send = Send(0, 100'000, 0);
  send.reduce = isa::ReduceAdd{};
  isa::PodProgram program = MakeProgram({Share(send), Share(isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  EXPECT_EQ(MustSimulate(config, program).devices[1].finish.value(), 6'025'061);
}

TEST(PodNetwork, TransfersBetweenVmemsLeaveHbmAlone) {
  const configs::Config config = Line(2);
  isa::Rdma send = Send(0, 100'000, 0);
  send.from = send.to = isa::MemorySpace::kVmem;
  isa::PodProgram program = MakeProgram({Share(send), Share(isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  const Timeline timeline = MustSimulate(config, program);
  EXPECT_EQ(timeline.devices[1].finish, Microseconds(3));
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(0));
  EXPECT_EQ(timeline.devices[1].moved.hbm(), Bytes(0));
}

TEST(PodNetwork, StreamsOverlapAndExposureIsWhatComputeDoesNotCover) {
  // The collective is in flight for 5, the vector unit busy for 3 of them; 2
  // are exposed. A second one afterwards, 1 long, is exposed altogether.
  isa::PodProgram program = MakeProgram({nullptr});
  const int32_t collective = AddOp(program, "all-gather.1", /*collective=*/true);
  const int32_t fusion = AddOp(program, "fusion.1");
  const isa::StreamId stream{isa::StreamKind::kCollective, 0};
  const auto flight = [&](int64_t cycles) {
    return Share(isa::Label{collective, true}, Latency(cycles), isa::Label{collective, false});
  };
  program.programs[0] = Share(isa::Start{stream, 0, flight(5000)}, isa::Label{fusion, true},
                              Compute(3000), isa::Label{fusion, false}, isa::Done{0},
                              isa::Start{stream, 0, flight(1000)}, isa::Done{0});
  const Timeline timeline = MustSimulate(TestConfig(), program);
  EXPECT_EQ(timeline.step_time, Microseconds(6));
  const DeviceTotals& totals = timeline.devices[0];
  EXPECT_EQ(totals.collective, Microseconds(6));
  EXPECT_EQ(totals.exposed, Microseconds(3));
  EXPECT_EQ(totals.compute_busy, Microseconds(3));
  EXPECT_EQ(timeline.ops[collective].count, 2);
  EXPECT_EQ(timeline.ops[collective].total, Microseconds(6));
  EXPECT_EQ(timeline.ops[collective].exposed, Microseconds(3));
  EXPECT_EQ(timeline.ops[fusion].total, Microseconds(3));
  EXPECT_EQ(timeline.ops[fusion].exposed, Microseconds(0));
}

TEST(PodNetwork, CollectivesInFlightTogetherCountOnce) {
  // 0-4 on one stream, 0-6 on another, compute 0-1: 6 in flight, 5 exposed.
  isa::PodProgram program = MakeProgram({nullptr});
  const int32_t a = AddOp(program, "a", true), b = AddOp(program, "b", true);
  program.programs[0] =
      Share(isa::Start{{isa::StreamKind::kCollective, 0},
                       0,
                       Share(isa::Label{a, true}, Latency(4000), isa::Label{a, false})},
            isa::Start{{isa::StreamKind::kCollective, 1},
                       1,
                       Share(isa::Label{b, true}, Latency(6000), isa::Label{b, false})},
            Compute(1000), isa::Done{1}, isa::Done{0});
  const Timeline timeline = MustSimulate(TestConfig(), program);
  EXPECT_EQ(timeline.devices[0].collective, Microseconds(6));
  EXPECT_EQ(timeline.devices[0].exposed, Microseconds(5));
  EXPECT_EQ(timeline.ops[a].exposed, Microseconds(3));
  EXPECT_EQ(timeline.ops[b].exposed, Microseconds(5));
}

TEST(PodNetwork, BodiesOfAStreamRunInOrder) {
  const isa::StreamId stream{isa::StreamKind::kCollective, 0};
  const Timeline timeline =
      MustSimulate(TestConfig(), MakeProgram({Share(isa::Start{stream, 0, Share(Latency(1000))},
                                                    isa::Start{stream, 1, Share(Latency(2000))},
                                                    isa::Done{1}, isa::Done{0})}));
  EXPECT_EQ(timeline.step_time, Microseconds(3));
}

TEST(PodNetwork, ArrowsLeadFromSenderToReceiver) {
  const configs::Config config = Line(3);
  isa::PodProgram program = MakeProgram({nullptr, nullptr, Share(isa::Wait{0, 1})});
  const int32_t op = AddOp(program, "permute", true);
  const isa::SharedBody body =
      Share(isa::Label{op, true}, Send(0, 100'000, 0), isa::Label{op, false});
  program.programs[0] = Share(isa::Start{{isa::StreamKind::kCollective, 0}, 0, body}, isa::Done{0});
  program.routes = {RouteBetween(config, {{0, 2}})};
  const Timeline timeline = MustSimulate(config, program, {0, 2, 1});
  EXPECT_THAT(timeline.recorded_devices, ElementsAre(0, 1, 2));
  std::vector<Span> links, arrivals;
  for (const Span& span : timeline.recording.Spans()) {
    if (span.track == Track::kIci) links.push_back(span);
    if (span.flow_in != 0) arrivals.push_back(span);
  }
  ASSERT_EQ(links.size(), 2);
  EXPECT_EQ(links[0].device, 0);
  EXPECT_EQ(links[1].device, 1);
  for (const Span& link : links) {
    EXPECT_EQ(link.lane, kXPlus);
    EXPECT_EQ(link.start, Picoseconds(0));
    EXPECT_EQ(link.end, Microseconds(2));
    EXPECT_EQ(link.bytes, Bytes(100'000));
    EXPECT_EQ(link.op, op);
  }
  ASSERT_EQ(arrivals.size(), 1);
  EXPECT_EQ(arrivals[0].device, 2);
  EXPECT_EQ(arrivals[0].track, Track::kCollective);
  EXPECT_EQ(arrivals[0].start, Microseconds(4));
  EXPECT_EQ(arrivals[0].flow_in, links[0].flow_out);
  EXPECT_EQ(links[1].flow_out, 0);
}

TEST(PodNetwork, DeadlockShowsTheCycleOfWaits) {
  const configs::Config config = Line(2);
  isa::PodProgram program = MakeProgram({nullptr, nullptr});
  const int32_t op = AddOp(program, "all-reduce.3", true);
  const isa::StreamId stream{isa::StreamKind::kCollective, 0};
  const isa::SharedBody stuck =
      Share(isa::Label{op, true}, isa::Wait{2, 1}, isa::Signal{0, 2}, isa::Label{op, false});
  program.programs = {Share(isa::Start{stream, 1, stuck}, isa::Done{1})};
  program.program_of_device = {0, 0};
  program.routes = {RouteBetween(config, {{0, 1}, {1, 0}})};
  EXPECT_EQ(SimulationError(config, program),
            "deadlock: 4 streams wait for what will not happen\n"
            "  device 0 tensor_core[0] waits for token 1, which device 0 collective[0] works on\n"
            "  device 0 collective[0] in all-reduce.3 waits for flag 2 to reach 1 (it is 0), which "
            "device 1 collective[0] raises\n"
            "  device 1 collective[0] in all-reduce.3 waits for flag 2 to reach 1 (it is 0), which "
            "device 0 collective[0] raises\n"
            "  which closes the cycle at device 0 collective[0] in all-reduce.3");
}

TEST(PodNetwork, WaitForWhatNobodySends) {
  const configs::Config config = Line(2);
  EXPECT_THAT(SimulationError(config, MakeProgram({Share(isa::Wait{5, 2}), nullptr})),
              HasSubstr("device 0 tensor_core[0] waits for flag 5 to reach 2 (it is 0), which no "
                        "instruction raises"));
}

TEST(PodNetwork, AStreamThatNoKernelCarriesOn) {
  const isa::SharedBody carried = Share(isa::Poll{});
  EXPECT_THAT(SimulationError(
                  TestConfig(),
                  MakeProgram({Share(isa::Start{{isa::StreamKind::kCollective, 0}, 0, carried})})),
              HasSubstr("device 0 collective[0] waits for a kernel that polls, and none runs"));
}

TEST(PodNetwork, WaitForMoreThanWasSent) {
  const configs::Config config = Line(2);
  isa::PodProgram program = MakeProgram({Share(isa::Signal{0, 5}), Share(isa::Wait{5, 2})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  EXPECT_THAT(SimulationError(config, program),
              HasSubstr("flag 5 to reach 2 (it is 1), but device 0 tensor_core[0], which raises "
                        "it, has nothing left to do"));
}

// Two slices of 2x2 chips, one host each: its card carries 4e9 B/s.
TEST(PodNetwork, TheChipsOfAHostShareItsNetworkCard) {
  const configs::Config config = WithSlices(TestConfig({2, 2, 1}), 2);
  const isa::SharedBody send = Share(Send(0, 100'000, 0));
  const isa::SharedBody receive = Share(isa::Wait{0, 1});
  isa::PodProgram program =
      MakeProgram({send, send, send, send, receive, receive, receive, receive});
  program.routes = {RouteBetween(config, {{0, 4}, {1, 5}, {2, 6}, {3, 7}})};
  // 100 kB at 1 ns a byte, then 3 of PCIe, 10 of network and 3 of PCIe.
  const Timeline timeline = MustSimulate(config, program, {1, 5});
  EXPECT_EQ(timeline.devices[0].finish, Microseconds(100));
  EXPECT_EQ(timeline.devices[7].finish, Microseconds(116));
  ASSERT_EQ(timeline.hosts.size(), 2u);
  EXPECT_EQ(timeline.hosts[0].sent, Bytes(400'000));
  EXPECT_EQ(timeline.hosts[0].received, Bytes(0));
  EXPECT_EQ(timeline.hosts[1].received, Bytes(400'000));
  // No link is used; the transfer is on a track of its own.
  for (const Bytes bytes : timeline.devices[0].sent) EXPECT_EQ(bytes, Bytes(0));
  const auto on_dcn = [](const Span& s) { return s.track == Track::kDcn; };
  const std::vector<Span> spans = timeline.recording.Spans();
  ASSERT_EQ(std::count_if(spans.begin(), spans.end(), on_dcn), 1);
  const Span& span = *std::find_if(spans.begin(), spans.end(), on_dcn);
  EXPECT_EQ(span.device, 1);
  EXPECT_EQ(span.end, Microseconds(100));
  EXPECT_NE(span.flow_out, 0u);
}

TEST(PodNetwork, OneChipAloneHasTheWholeNetworkCard) {
  const configs::Config config = WithSlices(TestConfig({2, 2, 1}), 2);
  // 100 kB at 4e9 B/s are 25; PCIe would take 10.
  isa::PodProgram program = MakeProgram({Share(Send(0, 100'000, 0)), nullptr, nullptr, nullptr,
                                         Share(isa::Wait{0, 1}), nullptr, nullptr, nullptr});
  program.routes = {RouteBetween(config, {{0, 4}})};
  EXPECT_EQ(MustSimulate(config, program).devices[4].finish, Microseconds(41));
}

TEST(PodNetwork, PcieIsSharedWithHostTransfers) {
  configs::Config config = WithSlices(TestConfig({1, 1, 1}), 2);
  config.chip.host.dcn_bytes_per_second = BytesPerSecond(1e10);
  // The send has PCIe for itself for 3, the latency of the host transfer: 30 kB at
  // 1e10 B/s. The 70 kB left and the 100 kB to the host share it: 14 for both, then
  // the other 30 kB: 3 + 14 + 3.
  isa::PodProgram program = MakeProgram(
      {Share(Send(0, 100'000, 0, 1), isa::HostDma{true, Bytes(100'000)}, isa::Wait{1, 1}),
       Share(isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  const Timeline timeline = MustSimulate(config, program);
  EXPECT_EQ(timeline.devices[1].finish, Microseconds(17 + 16));
  EXPECT_EQ(timeline.devices[0].finish, Microseconds(20));
}

// A SparseCore that adds 1000 elements per microsecond holds up what the link would
// carry in 2 us: 100 kB are 25,000 additions, 25 us, and one more window of 1000 B
// (250 additions and 1 ns of HBM) after a hop.
TEST(PodNetwork, OffLoadedAdditionsTakeTheSparseCore) {
  configs::Config config = Line(2);
  config.chip.sparse_core.count = 1;
  config.chip.sparse_core.tiles = 1;
  config.chip.sparse_core.lanes = 1;
  isa::Rdma send = Send(0, 100'000, 0);
  send.reduce = isa::ReduceAdd{.element_bytes = 4, .sparse_core = true};
  isa::PodProgram program = MakeProgram({Share(send), Share(isa::Wait{0, 1})});
  program.routes = {RouteBetween(config, {{0, 1}})};
  EXPECT_EQ(MustSimulate(config, program).devices[1].finish,
            Picoseconds(25'000'000 + 1'000'000 + 250'000 + 1000));
}

}  // namespace
}  // namespace tpusim::sim
