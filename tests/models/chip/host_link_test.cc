#include "models/chip/host_link.h"

#include <utility>
#include <vector>

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

using ::tpusim::testing::Note;

// 3 us, then 100 ps a byte each way.
struct HostLinkBench : testing::Bench {
  explicit HostLinkBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
  HostLink link{"link", fluid, chip, /*multiplicity=*/1};
  flow::ResourceId hbm = fluid.network().AddResource("hbm", 1e12);
  struct Probe : testing::NoProbe {
    std::vector<std::pair<int32_t, int64_t>> ended;  // op, begin
    void HostTransferEnded(int32_t op, bool, Picoseconds start, Bytes) override {
      ended.emplace_back(op, start.value());
    }
  } probe;

  void Issue(bool to_host, int64_t bytes, Note& note, int64_t devices = 1) {
    HostTransfer transfer;
    transfer.dma = {to_host, Bytes(bytes)};
    transfer.hbm = hbm;
    transfer.multiplicity = devices;
    transfer.op = 7;
    transfer.probe = &probe;
    transfer.listener = &note;
    link.Issue(transfer);
  }
};

TEST(HostLink, ATransferTakesTheLatencyAndItsBytes) {
  HostLinkBench bench;
  Note note;
  bench.Elaborate();
  bench.RunTo(500);
  bench.Issue(true, 1000, note);
  EXPECT_TRUE(bench.HappensAt(3'100'500, [&] { return note.times.size() == 1; }));
  // From its issue on.
  EXPECT_EQ(bench.probe.ended, (std::vector<std::pair<int32_t, int64_t>>{{7, 500}}));
}

TEST(HostLink, ATransferWithoutBytesIsLatency) {
  HostLinkBench bench;
  Note note;
  bench.Elaborate();
  bench.Issue(false, 0, note);
  EXPECT_TRUE(bench.HappensAt(3'000'000, [&] { return note.times.size() == 1; }));
}

TEST(HostLink, TransfersOfOneDirectionShareIt) {
  HostLinkBench bench;
  Note first, second, back;
  bench.Elaborate();
  bench.Issue(true, 1000, first);
  bench.Issue(true, 1000, second);
  bench.Issue(false, 1000, back);
  EXPECT_TRUE(bench.HappensAt(3'100'000, [&] { return back.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(3'200'000, [&] { return first.times.size() == 1; }));
  EXPECT_EQ(second.times, first.times);
}

// One that is issued while another waits gets its latency from its own issue on.
TEST(HostLink, LatenciesPassSideBySide) {
  HostLinkBench bench;
  Note first, second;
  bench.Elaborate();
  bench.Issue(true, 1000, first);
  bench.RunTo(100'000);
  bench.Issue(true, 1000, second);
  EXPECT_TRUE(bench.HappensAt(3'100'000, [&] { return first.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(3'200'000, [&] { return second.times.size() == 1; }));
}

// The device's HBM gives 5e9 B/s of it: 200 ps a byte.
TEST(HostLink, ATransferIsAsFastAsTheMemoryOfItsDevice) {
  HostLinkBench bench;
  Note note;
  bench.hbm = bench.fluid.network().AddResource("slow", 5e9);
  bench.Elaborate();
  bench.Issue(true, 1000, note);
  EXPECT_TRUE(bench.HappensAt(3'200'000, [&] { return note.times.size() == 1; }));
}

// Two equal devices on this link: each has half of it.
TEST(HostLink, EqualDevicesOfAChipShareIt) {
  HostLinkBench bench;
  Note note;
  bench.Elaborate();
  bench.Issue(true, 1000, note, /*devices=*/2);
  EXPECT_TRUE(bench.HappensAt(3'200'000, [&] { return note.times.size() == 1; }));
}

}  // namespace
}  // namespace tpusim::chip
