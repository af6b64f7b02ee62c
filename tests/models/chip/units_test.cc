#include "models/chip/units.h"

#include <functional>
#include <optional>

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

struct UnitsBench : testing::Bench {
  explicit UnitsBench(sc_core::sc_module_name name = "bench") : Bench(name) {
    chip.devices = 2;
    chip.sparse_core.count = 4;  // two per device
    chip.sparse_core.tiles = 16;
    chip.sparse_core.lanes = 8;
    cores.emplace("sparse_core", fluid, timing::AddsPerSecond(chip), ".adds");
  }
  Slot mxu{"mxu"}, xlu{"xlu"};
  Vpu vpu{"vpu", fluid, chip};
  Server link{"die_link", fluid, chip.ici.die_to_die_bytes_per_second.value()};
  std::optional<Server> cores;
  testing::Note first, second;
};

// The slots of a TensorCore, each asked the same.
struct Slots : ::testing::TestWithParam<Slot& (*)(UnitsBench&)> {};

TEST_P(Slots, ABlockMayBeginWhereTheOneBeforeEnds) {
  UnitsBench bench;
  Slot& slot = GetParam()(bench);
  slot.Occupy(Picoseconds(1000), Picoseconds(500));
  slot.Occupy(Picoseconds(1500), Picoseconds(250));  // 1500 = 1000 + 500
  slot.Occupy(Picoseconds(9000), Picoseconds(0));
  EXPECT_EQ(slot.busy(), Picoseconds(750));
}

TEST_P(Slots, TwoBlocksDoNotOverlap) {
  UnitsBench bench;
  Slot& slot = GetParam()(bench);
  slot.Occupy(Picoseconds(1000), Picoseconds(500));
  EXPECT_DEATH(slot.Occupy(Picoseconds(1499), Picoseconds(1)), "two blocks in one execution slot");
}

INSTANTIATE_TEST_SUITE_P(Units, Slots,
                         ::testing::Values([](UnitsBench& b) -> Slot& { return b.mxu; },
                                           [](UnitsBench& b) -> Slot& { return b.xlu; },
                                           [](UnitsBench& b) -> Slot& { return b.vpu; }));

// A server, how much of it a transfer takes, and how long it has to have it alone.
struct ServerCase {
  Server& (*server)(UnitsBench&);
  double amount;
  int64_t time;
};
struct Servers : ::testing::TestWithParam<ServerCase> {};

TEST_P(Servers, ATransferAloneHasAllOfIt) {
  UnitsBench bench;
  bench.Elaborate();
  bench.Flow(GetParam().server(bench).resource(), GetParam().amount, &bench.first);
  EXPECT_TRUE(bench.HappensAt(GetParam().time, [&] { return bench.first.times.size() == 1; }));
}

TEST_P(Servers, TransfersShareIt) {
  UnitsBench bench;
  bench.Elaborate();
  const auto& [server, amount, time] = GetParam();
  bench.Flow(server(bench).resource(), amount, &bench.first);
  bench.RunTo(time / 2);
  bench.Flow(server(bench).resource(), amount, &bench.second);
  // Half of it each until the other half of the first is done; then half of the second, alone.
  EXPECT_TRUE(bench.HappensAt(time / 2 * 3, [&] { return bench.first.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(time * 2, [&] { return bench.second.times.size() == 1; }));
}

INSTANTIATE_TEST_SUITE_P(
    Units, Servers,
    ::testing::Values(
        // 4 slots at 1 GHz: 4 register operations per 1000 ps, 4000 in a million.
        ServerCase{[](UnitsBench& b) -> Server& { return b.vpu.adds(); }, 4000, 1'000'000},
        // 1e11 B/s: 10 ps a byte.
        ServerCase{[](UnitsBench& b) -> Server& { return b.link; }, 1000, 10'000},
        // On all lanes of the device: 2 x 16 x 8 = 256 additions per 1000 ps.
        ServerCase{[](UnitsBench& b) -> Server& { return *b.cores; }, 2560, 10'000}));

// Kernels slow transfers no more than transfers slow kernels (units.h).
TEST(Vpu, BlocksAndTransfersDoNotSlowEachOther) {
  UnitsBench bench;
  bench.Elaborate();
  bench.vpu.Occupy(Picoseconds(0), Picoseconds(5'000'000));
  bench.Flow(bench.vpu.adds().resource(), 4000, &bench.first);
  EXPECT_TRUE(bench.HappensAt(1'000'000, [&] { return bench.first.times.size() == 1; }));
  EXPECT_EQ(bench.vpu.busy(), Picoseconds(5'000'000));
}

TEST(Vpu, ItsAdditionsAreNamedAfterIt) {
  UnitsBench bench;
  EXPECT_EQ(bench.fluid.network().Name(bench.vpu.adds().resource()), "bench.vpu.adds");
  EXPECT_EQ(bench.fluid.network().Name(bench.cores->resource()), "bench.sparse_core.adds");
}

}  // namespace
}  // namespace tpusim::chip
