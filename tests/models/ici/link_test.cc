#include "models/ici/link.h"

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::ici {
namespace {

struct LinkBench : testing::Bench {
  explicit LinkBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
  Link link{"link", fluid, {0, configs::Direction::kXPlus}, BytesPerSecond(1e9)};
  testing::Note first, second;
};

// 1e9 B/s: 1000 ps a byte. The latency of a hop belongs to the route.
TEST(Link, ATransferAloneHasAllOfIt) {
  LinkBench bench;
  bench.Elaborate();
  bench.Flow(bench.link.resource(), 100, &bench.first);
  EXPECT_TRUE(bench.HappensAt(100'000, [&] { return bench.first.times.size() == 1; }));
}

TEST(Link, TransfersShareIt) {
  LinkBench bench;
  bench.Elaborate();
  bench.Flow(bench.link.resource(), 100, &bench.first);
  bench.Flow(bench.link.resource(), 300, &bench.second);
  // Half each until 200 ns; then 200 bytes of the second are left, alone.
  EXPECT_TRUE(bench.HappensAt(200'000, [&] { return bench.first.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(400'000, [&] { return bench.second.times.size() == 1; }));
}

TEST(Link, CountsBytesAtBothEnds) {
  LinkBench bench;
  bench.link.Sent(Bytes(100));
  bench.link.Sent(Bytes(100));
  bench.link.Received(Bytes(100));
  EXPECT_EQ(bench.link.sent(), Bytes(200));
  EXPECT_EQ(bench.link.received(), Bytes(100));
  EXPECT_EQ(bench.link.id().direction, configs::Direction::kXPlus);
}

}  // namespace
}  // namespace tpusim::ici
