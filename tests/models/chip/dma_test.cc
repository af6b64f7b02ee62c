#include "models/chip/dma.h"

#include <gmock/gmock.h>

#include <optional>
#include <vector>

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

using ::testing::ElementsAre;
using ::tpusim::testing::Note;
using ::tpusim::testing::StubMemory;

// HBM takes 1 ps a byte, CMEM 2. A read waits for 500 ns, a write for 300.
struct DmaBench : testing::Bench {
  explicit DmaBench(sc_core::sc_module_name name = "bench") : Bench(name) {
    chip.dma.write_start_latency = Nanoseconds(300);
    chip.dma.turnaround = Picoseconds(40);
    chip.cmem.bytes = Bytes(1'000'000);
    chip.cmem.bytes_per_second = BytesPerSecond(5e11);
    hbm.served_by = fluid.network().AddResource("hbm", 1e12);
    cmem.served_by = fluid.network().AddResource("cmem", 5e11);
    dma.emplace("dma", fluid, chip, /*channels=*/2, probe);
    for (StubMemory* memory : {&hbm, &cmem, &vmem}) dma->memories(*memory);
  }
  struct Ended {
    int32_t channel, op;
    int64_t start, end, bytes, hbm;
    bool operator==(const Ended&) const = default;
  };
  struct Probe : testing::NoProbe {
    std::vector<Ended> ended;
    void TransferEnded(int32_t channel, int32_t op, int64_t, Picoseconds start, Picoseconds end,
                       Bytes bytes, Bytes in_hbm) override {
      ended.push_back({channel, op, start.value(), end.value(), bytes.value(), in_hbm.value()});
    }
  } probe;
  StubMemory hbm, cmem, vmem;
  std::optional<Dma> dma;

  DmaTransfer Copy(isa::MemorySpace from, isa::MemorySpace to, int64_t bytes, Note& note) {
    const isa::Dma copy{from, to, Bytes(bytes)};
    DmaTransfer transfer;
    transfer.write = timing::IsWrite(copy);
    transfer.bytes = copy.bytes;
    transfer.accessed = timing::AccessedBy(copy);
    transfer.listener = &note;
    transfer.op = 3;
    return transfer;
  }
  DmaTransfer Read(int64_t bytes, Note& note) {
    return Copy(isa::MemorySpace::kHbm, isa::MemorySpace::kVmem, bytes, note);
  }
  DmaTransfer Write(int64_t bytes, Note& note) {
    return Copy(isa::MemorySpace::kVmem, isa::MemorySpace::kHbm, bytes, note);
  }
};

TEST(Dma, AReadWaitsForItsStartLatency) {
  DmaBench bench;
  Note note;
  bench.Elaborate();
  bench.dma->Issue(1, bench.Read(1000, note));
  EXPECT_TRUE(bench.HappensAt(501'000, [&] { return note.times.size() == 1; }));
  EXPECT_THAT(bench.probe.ended, ElementsAre(DmaBench::Ended{1, 3, 500'000, 501'000, 1000, 1000}));
  EXPECT_EQ(bench.dma->Ended(1).hbm(), Bytes(1000));
  EXPECT_EQ(bench.dma->Ended(0).hbm(), Bytes(0));
}

TEST(Dma, AWriteWaitsForItsOwn) {
  DmaBench bench;
  Note note;
  bench.Elaborate();
  bench.dma->Issue(0, bench.Write(1000, note));
  EXPECT_TRUE(bench.HappensAt(301'000, [&] { return note.times.size() == 1; }));
}

// The start latency of a queued transfer passes while the one before it moves.
TEST(Dma, TransfersOfAChannelGoOneAfterTheOther) {
  DmaBench bench;
  Note first, second;
  bench.Elaborate();
  bench.dma->Issue(0, bench.Read(1000, first));
  bench.dma->Issue(0, bench.Read(1000, second));
  EXPECT_TRUE(bench.HappensAt(501'000, [&] { return first.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(502'000, [&] { return second.times.size() == 1; }));
}

TEST(Dma, AReadOfTheSameKernelTurnsAround) {
  DmaBench bench;
  Note first, second;
  bench.Elaborate();
  DmaTransfer follows = bench.Read(1000, second);
  follows.follows = true;
  bench.dma->Issue(0, bench.Read(1000, first));
  bench.dma->Issue(0, follows);
  EXPECT_TRUE(bench.HappensAt(502'040, [&] { return second.times.size() == 1; }));
  EXPECT_EQ(bench.probe.ended[1].start, 501'040);
}

TEST(Dma, ChannelsShareTheMemory) {
  DmaBench bench;
  Note first, second;
  bench.Elaborate();
  bench.dma->Issue(0, bench.Read(1000, first));
  bench.dma->Issue(1, bench.Read(500, second));
  // Half of the rate each: 500 bytes take 1000 ps; then 500 of the first are left, alone.
  EXPECT_TRUE(bench.HappensAt(501'000, [&] { return second.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(501'500, [&] { return first.times.size() == 1; }));
}

TEST(Dma, ACopyBetweenMemoriesIsAsFastAsTheSlowerOne) {
  DmaBench bench;
  Note note;
  bench.Elaborate();
  bench.dma->Issue(0, bench.Copy(isa::MemorySpace::kHbm, isa::MemorySpace::kCmem, 1000, note));
  EXPECT_TRUE(bench.HappensAt(502'000, [&] { return note.times.size() == 1; }));
  EXPECT_EQ(bench.dma->Ended(0).In(isa::MemorySpace::kCmem), Bytes(1000));
}

// The memory that is written decides the start latency (timing::IsWrite): 300 ns for HBM.
TEST(Dma, ACopyInsideHbmMovesItsBytesTwice) {
  DmaBench bench;
  Note note;
  bench.Elaborate();
  bench.dma->Issue(0, bench.Copy(isa::MemorySpace::kHbm, isa::MemorySpace::kHbm, 1000, note));
  EXPECT_TRUE(bench.HappensAt(302'000, [&] { return note.times.size() == 1; }));
  EXPECT_EQ(bench.probe.ended[0].hbm, 2000);
}

// A load and a store per cycle, of 8 x 128 words: 4096 bytes per 1000 ps.
TEST(Dma, ACopyInsideVmemIsLoadsAndStores) {
  DmaBench bench;
  Note note;
  bench.Elaborate();
  bench.dma->Issue(0, bench.Copy(isa::MemorySpace::kVmem, isa::MemorySpace::kVmem, 8192, note));
  EXPECT_TRUE(bench.HappensAt(502'000, [&] { return note.times.size() == 1; }));
}

// Out of the machine with 600 bytes to move, and back in at 600 ns: they take 600 ps.
TEST(Dma, AChannelGoesOnWhereItWasSuspended) {
  DmaBench bench;
  Note note;
  bench.Elaborate();
  bench.dma->Issue(0, bench.Read(1000, note));
  EXPECT_TRUE(bench.dma->CanSuspend(0));
  bench.RunTo(500'400);
  EXPECT_TRUE(bench.dma->CanSuspend(0));
  const Channel state = bench.dma->Suspend(0);
  EXPECT_EQ(state.first().bytes, 600);
  bench.RunTo(600'000);
  EXPECT_TRUE(note.times.empty());
  bench.dma->Resume(0, state);
  EXPECT_TRUE(bench.HappensAt(600'600, [&] { return note.times.size() == 1; }));
}

// At the moment of its end a transfer has to be seen first. A flow that started earlier and ends in
// the same instant is told before.
TEST(Dma, AnEndingTransferIsNotSuspended) {
  DmaBench bench;
  struct AtEnd : Note {
    Dma* dma = nullptr;
    bool could = true;
    void FlowEnded(uint64_t tag) override {
      could = dma->CanSuspend(0);
      Note::FlowEnded(tag);
    }
  } at_end;
  Note note;
  at_end.dma = &*bench.dma;
  const flow::ResourceId clock = bench.fluid.network().AddResource("clock", 1e12);
  bench.Elaborate();
  bench.Flow(clock, 501'000, &at_end);
  bench.dma->Issue(0, bench.Read(1000, note));
  bench.RunTo(501'000);
  EXPECT_THAT(at_end.times, ElementsAre(501'000));
  EXPECT_FALSE(at_end.could);
  EXPECT_THAT(note.times, ElementsAre(501'000));
  EXPECT_TRUE(bench.dma->CanSuspend(0));
}

// 1000 bytes per 1000 ps are all of HBM: beside another channel the flow has half.
TEST(Dma, ABulkFlowThatOthersSlowIsFound) {
  DmaBench bench;
  Note note;
  bench.Elaborate();
  timing::MemoryBytes moved;
  moved.hbm() = Bytes(1000);
  bench.dma->BeginBulk(0, moved, Picoseconds(1000), /*times=*/1000);
  bench.RunTo(10'000);
  EXPECT_FALSE(bench.dma->BulkIsSlowed(0, 0.01));
  EXPECT_EQ(bench.dma->OtherRates(0), 0);
  bench.dma->Issue(1, bench.Read(100'000, note));
  bench.RunTo(510'500);  // it moves since 510 ns
  EXPECT_TRUE(bench.dma->BulkIsSlowed(0, 0.01));
  EXPECT_FALSE(bench.dma->BulkIsSlowed(0, 0.51));
  EXPECT_EQ(bench.dma->OtherRates(0), 5e11);
  bench.dma->EndBulk(0, {510'000, 0});
  // 250 bytes in 500 ps; the other 99,750 alone.
  EXPECT_TRUE(bench.HappensAt(510'500 + 99'750, [&] { return note.times.size() == 1; }));
}

}  // namespace
}  // namespace tpusim::chip
