#include "models/chip/nic.h"

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

// The card of a host with four chips, for two equal hosts: 4e9 B/s, 250 ps a byte.
struct NicBench : testing::Bench {
  explicit NicBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
  Nic nic{"nic", fluid, chip, /*chips=*/4, /*multiplicity=*/2};
  testing::Note out, more, in;
};

TEST(Nic, ServesAllChipsOfItsHost) {
  NicBench bench;
  bench.Elaborate();
  bench.Flow(bench.nic.outward(), 1000, &bench.out);
  EXPECT_TRUE(bench.HappensAt(250'000, [&] { return bench.out.times.size() == 1; }));
}

TEST(Nic, DirectionsAreApart) {
  NicBench bench;
  bench.Elaborate();
  bench.Flow(bench.nic.outward(), 1000, &bench.out);
  bench.Flow(bench.nic.outward(), 1000, &bench.more);
  bench.Flow(bench.nic.inward(), 1000, &bench.in);
  EXPECT_TRUE(bench.HappensAt(250'000, [&] { return bench.in.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(500'000, [&] { return bench.out.times.size() == 1; }));
  EXPECT_EQ(bench.more.times, bench.out.times);
}

TEST(Nic, ReachesItsShareOfTheRate) {
  NicBench bench;
  bench.chip.host.dcn_efficiency = 0.5;
  Nic slow("slow", bench.fluid, bench.chip, /*chips=*/4, /*multiplicity=*/1);
  bench.Elaborate();
  bench.Flow(slow.outward(), 1000, &bench.out);
  EXPECT_TRUE(bench.HappensAt(500'000, [&] { return bench.out.times.size() == 1; }));
}

// Each of six senders sends through one of two equal cards: 600 bytes, 300 a card.
TEST(Nic, CountsBytesOfOneCard) {
  NicBench bench;
  bench.nic.Sent(Bytes(100), 6);
  bench.nic.Received(Bytes(100), 4);
  EXPECT_EQ(bench.nic.sent(), Bytes(300));
  EXPECT_EQ(bench.nic.received(), Bytes(200));
  EXPECT_EQ(bench.nic.multiplicity(), 2);
}

}  // namespace
}  // namespace tpusim::chip
