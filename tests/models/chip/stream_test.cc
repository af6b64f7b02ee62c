#include "models/chip/stream.h"

#include <gmock/gmock.h>

#include <optional>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::tpusim::testing::MakeBody;
using ::tpusim::testing::Share;

// A stream alone, whose servers do what the test says. A signal shows where it is.
struct StreamBench : testing::Bench {
  explicit StreamBench(sc_core::sc_module_name name = "bench",
                       isa::StreamKind kind = isa::StreamKind::kTensorCore)
      : Bench(name) {
    program.routes.resize(1);
    program.routes[0].from.resize(1);
    program.info.ops.resize(3);
    program.info.ops[2].name = "fusion.2";
    program.info.buffers = {{.name = "small", .bytes = Bytes(40)},
                            {.name = "large", .bytes = Bytes(100)}};
    const StreamContext context{.device = 0,
                                .multiplicity = 3,
                                .params = chip,
                                .program = program,
                                .faults = faults,
                                .probe = probe,
                                .ready = ready};
    stream.emplace("stream", context, events::StreamRef{{kind, 0}, /*ordinal=*/4});
    hbm.capacity = Bytes(100);
    hbm.served_by = flow::ResourceId{};
    for (testing::StubMemory* memory : {&hbm, &cmem, &vmem}) stream->memories(*memory);
    stream->dma(dma);
    stream->tensor_core(core);
    stream->host_link(host);
    stream->network(network);
    stream->flags(flags);
    stream->fork_join(fork_join);
  }
  // Gives it the body and runs what takes no time.
  void Execute(const isa::Body& body, int32_t token = -1) {
    Elaborate();
    stream->Enqueue(body, token, {});
    RunTo(0);
  }
  size_t signals() const { return network.signalled.size(); }

  isa::PodProgram program;
  events::Faults faults;
  events::RunQueue ready{"ready"};
  struct Probe : testing::NoProbe {
    std::vector<std::pair<int32_t, int64_t>> live;  // buffer, bytes then
    int finished = 0;
    void LiveBytesChanged(isa::MemorySpace, Bytes bytes, int32_t buffer, bool) override {
      live.emplace_back(buffer, bytes.value());
    }
    void StreamFinished() override { ++finished; }
  } probe;
  testing::StubMemory hbm, cmem, vmem;
  testing::StubDma dma;
  testing::StubCompute core;
  testing::StubHost host;
  testing::StubNetwork network;
  testing::StubFlags flags;
  testing::StubForkJoin fork_join;
  std::optional<Stream> stream;
};

TEST(Stream, SleepsUntilItsBlockHasEnded) {
  StreamBench bench;
  const isa::Body body = MakeBody(testing::Compute(10), isa::Signal{});
  bench.Execute(body);
  EXPECT_EQ(bench.core.blocks, 1);
  EXPECT_EQ(bench.stream->blocked(), Stream::Blocked::kWork);
  bench.RunTo(777);
  EXPECT_EQ(bench.signals(), 0u);
  bench.stream->WorkEnded();
  bench.RunTo(777);
  EXPECT_THAT(bench.network.signalled, ElementsAre(777));
  EXPECT_TRUE(bench.stream->finished());
  EXPECT_EQ(bench.stream->retired(), 2);
}

struct CollectiveStreamBench : StreamBench {
  explicit CollectiveStreamBench(sc_core::sc_module_name name = "bench")
      : StreamBench(name, isa::StreamKind::kCollective) {}
};

// Beside the TensorCore a block is control work: it takes its time and no slot.
TEST(Stream, ControlWorkOfACollectiveTakesItsCycles) {
  CollectiveStreamBench bench;
  const isa::Body body = MakeBody(testing::Latency(5), isa::Signal{});
  bench.Execute(body);
  EXPECT_TRUE(bench.HappensAt(5000, [&] { return bench.signals() == 1; }));
  EXPECT_EQ(bench.core.blocks, 0);
}

TEST(Stream, LoopsRunTheirBodySoOften) {
  StreamBench bench;
  const isa::Body body =
      MakeBody(isa::Loop{3, Share(isa::Signal{}, isa::Loop{2, Share(isa::Signal{})})},
               isa::Loop{0, Share(isa::Signal{})}, isa::Loop{5, Share()});
  bench.Execute(body);
  EXPECT_EQ(bench.signals(), 9u);  // 3 x (1 + 2)
  EXPECT_TRUE(bench.stream->finished());
}

TEST(Stream, BranchesAndCallsAreEntered) {
  StreamBench bench;
  isa::Branch branch;
  branch.taken = 1;
  branch.bodies = {Share(isa::Signal{}), Share(isa::Signal{}, isa::Signal{})};
  const isa::Body body = MakeBody(branch, isa::Call{Share(isa::Signal{})});
  bench.Execute(body);
  EXPECT_EQ(bench.signals(), 3u);
  EXPECT_EQ(bench.stream->retired(), 4);  // the branch and three signals; a call is none itself
}

// The innermost label is the operation that work is for.
TEST(Stream, LabelsNest) {
  StreamBench bench;
  const isa::Body body =
      MakeBody(isa::Rdma{}, isa::Label{1}, isa::Label{2}, isa::Rdma{}, isa::Label{2, false},
               isa::Rdma{}, isa::Label{1, false}, isa::Rdma{});
  bench.Execute(body);
  EXPECT_THAT(bench.network.ops, ElementsAre(-1, 2, 1, -1));
}

TEST(Stream, GoesOnAtOnceIfItsFlagIsThere) {
  StreamBench bench;
  const isa::Body body = MakeBody(isa::Wait{6, 2}, isa::Signal{});
  bench.Execute(body);
  EXPECT_THAT(bench.flags.wanted, ElementsAre(Pair(6, 2)));
  EXPECT_EQ(bench.signals(), 1u);
}

TEST(Stream, WaitsForItsFlag) {
  StreamBench bench;
  bench.flags.taken = false;
  const isa::Body body = MakeBody(isa::Wait{6, 2}, isa::Signal{});
  bench.Execute(body);
  bench.RunTo(1'000'000);
  EXPECT_EQ(bench.signals(), 0u);
  EXPECT_EQ(bench.stream->blocked(), Stream::Blocked::kFlag);
  EXPECT_EQ(bench.stream->blocked_on(), 6);
  EXPECT_EQ(bench.stream->blocked_count(), 2);
  bench.stream->FlagReached();
  bench.RunTo(1'000'000);
  EXPECT_THAT(bench.network.signalled, ElementsAre(1'000'000));
}

// Its channel is its place among the streams.
TEST(Stream, CopiesGoThroughItsChannel) {
  StreamBench bench;
  const isa::Dma copy{isa::MemorySpace::kVmem, isa::MemorySpace::kHbm, Bytes(30)};
  const isa::Body body = MakeBody(copy, isa::Signal{});
  bench.Execute(body);
  ASSERT_EQ(bench.dma.issued.size(), 1u);
  EXPECT_EQ(bench.dma.issued[0].channel, 4);
  EXPECT_TRUE(bench.dma.issued[0].transfer.write);
  EXPECT_EQ(bench.dma.issued[0].transfer.accessed.hbm(), Bytes(30));
  EXPECT_EQ(bench.signals(), 0u);
  bench.dma.EndNext();
  bench.RunTo(0);
  EXPECT_EQ(bench.signals(), 1u);
}

TEST(Stream, HostCopiesAreThoseOfAllEqualDevices) {
  StreamBench bench;
  const isa::Body body = MakeBody(isa::HostDma{true, Bytes(30)}, isa::Signal{});
  bench.Execute(body);
  ASSERT_EQ(bench.host.issued.size(), 1u);
  EXPECT_EQ(bench.host.issued[0].multiplicity, 3);
  EXPECT_TRUE(bench.host.issued[0].dma.to_host);
  EXPECT_EQ(bench.signals(), 0u);
  bench.host.issued[0].listener->TransferEnded(0);
  bench.RunTo(0);
  EXPECT_EQ(bench.signals(), 1u);
}

TEST(Stream, AJoinThatHasToWaitIsWoken) {
  StreamBench bench;
  bench.fork_join.joined = ForkJoinInterface::Joined::kWait;
  const isa::Body body = MakeBody(isa::Start{{}, 3, Share()}, isa::Done{3}, isa::Signal{});
  bench.Execute(body);
  EXPECT_THAT(bench.fork_join.forked, ElementsAre(3));
  EXPECT_EQ(bench.stream->blocked(), Stream::Blocked::kToken);
  EXPECT_EQ(bench.stream->blocked_on(), 3);
  bench.stream->Wake();
  bench.RunTo(0);
  EXPECT_EQ(bench.signals(), 1u);
}

TEST(Stream, APollEndsWhenAStepBegins) {
  CollectiveStreamBench bench;
  const isa::Body body = MakeBody(isa::Poll{}, isa::Signal{});
  bench.Execute(body, 3);
  EXPECT_EQ(bench.stream->blocked(), Stream::Blocked::kStep);
  EXPECT_THAT(bench.core.told, ElementsAre(&*bench.stream));
  bench.RunTo(50);
  EXPECT_EQ(bench.signals(), 0u);
  bench.stream->StepBegan();
  bench.RunTo(50);
  EXPECT_THAT(bench.network.signalled, ElementsAre(50));
}

// Nor do later ones of that body wait, or those of bodies before it; those behind it do again.
TEST(Stream, APollEndsWhenItsBodyIsAwaited) {
  CollectiveStreamBench bench;
  const isa::Body body = MakeBody(isa::Poll{}, isa::Poll{}, isa::Signal{});
  bench.Execute(body, 3);
  bench.stream->Enqueue(body, 4, {});
  bench.stream->Enqueue(body, 5, {});
  bench.stream->Awaited(7);  // of another stream
  bench.RunTo(20);
  EXPECT_EQ(bench.signals(), 0u);
  bench.stream->Awaited(4);
  EXPECT_THAT(bench.core.told, IsEmpty());
  bench.RunTo(50);
  EXPECT_THAT(bench.network.signalled, ElementsAre(20, 20));
  EXPECT_EQ(bench.stream->token(), 5);
  EXPECT_EQ(bench.stream->blocked(), Stream::Blocked::kStep);
}

TEST(Stream, BodiesRunOneAfterTheOther) {
  StreamBench bench;
  const isa::Body first = MakeBody(testing::Compute(1)), second = MakeBody(isa::Signal{});
  bench.Execute(first, 8);
  bench.stream->Enqueue(second, 9, {});
  EXPECT_TRUE(bench.stream->Holds(8));
  EXPECT_TRUE(bench.stream->Holds(9));
  EXPECT_FALSE(bench.stream->Holds(7));
  bench.RunTo(100);
  EXPECT_EQ(bench.signals(), 0u);
  EXPECT_THAT(bench.fork_join.finished, IsEmpty());
  bench.stream->WorkEnded();
  bench.RunTo(100);
  EXPECT_THAT(bench.fork_join.finished, ElementsAre(8, 9));
  EXPECT_EQ(bench.probe.finished, 2);
  EXPECT_EQ(bench.signals(), 1u);
}

// The program itself (token -1) finishes nothing.
TEST(Stream, BuffersAreCountedInTheirMemory) {
  StreamBench bench;
  const isa::Body body =
      MakeBody(isa::Alloc{isa::MemorySpace::kHbm, 0}, isa::Free{isa::MemorySpace::kHbm, 0},
               isa::Alloc{isa::MemorySpace::kHbm, 1});
  bench.Execute(body);
  EXPECT_THAT(bench.probe.live, ElementsAre(Pair(0, 40), Pair(0, 0), Pair(1, 100)));
  EXPECT_THAT(bench.fork_join.finished, IsEmpty());
}

// ---- What ends the simulation. SystemC stops, so that it is the last thing a test sees. -------

TEST(Stream, ABufferThatDoesNotFitEndsIt) {
  StreamBench bench;
  const isa::Body body = MakeBody(isa::Alloc{isa::MemorySpace::kHbm, 0},
                                  isa::Alloc{isa::MemorySpace::kHbm, 1}, isa::Signal{});
  bench.Execute(body);
  EXPECT_EQ(Message(bench.faults.status()), "large is too large");
  EXPECT_EQ(bench.signals(), 0u);
}

TEST(Stream, AKernelThatIsRefusedEndsItByItsName) {
  StreamBench bench;
  bench.core.refuses = absl::ResourceExhaustedError("no room");
  const isa::Body body = MakeBody(isa::Label{2}, isa::Kernel{}, isa::Signal{});
  bench.Execute(body);
  EXPECT_EQ(Message(bench.faults.status()), "fusion.2: no room");
  EXPECT_EQ(bench.faults.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(bench.signals(), 0u);
}

TEST(Stream, ATokenInUseEndsIt) {
  StreamBench bench;
  bench.fork_join.forks = false;
  const isa::Body body = MakeBody(isa::Start{{}, 3, Share()}, isa::Signal{});
  bench.Execute(body);
  EXPECT_THAT(Message(bench.faults.status()),
              HasSubstr("bench.stream: token 3 is started again before its Done"));
  EXPECT_EQ(bench.signals(), 0u);
}

TEST(Stream, ADoneOfNothingEndsIt) {
  StreamBench bench;
  bench.fork_join.joined = ForkJoinInterface::Joined::kNeverStarted;
  const isa::Body body = MakeBody(isa::Done{3}, isa::Signal{});
  bench.Execute(body);
  EXPECT_THAT(Message(bench.faults.status()),
              HasSubstr("bench.stream: Done of token 3, which was not started"));
  EXPECT_EQ(bench.signals(), 0u);
}

TEST(Stream, TooManyEventsEndIt) {
  StreamBench bench;
  bench.faults.LimitEvents(1000);
  const isa::Body body = MakeBody(isa::Loop{2000, Share(isa::Signal{})});
  bench.Execute(body);
  EXPECT_EQ(bench.faults.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(bench.signals(), 999u);  // the loop is an event, too
}

}  // namespace
}  // namespace tpusim::chip
