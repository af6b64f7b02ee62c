#include "models/chip/vpu.h"

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

struct VpuBench : testing::Bench {
  explicit VpuBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
  Vpu vpu{"vpu", fluid, chip};
  testing::Note first, second;
};

// 4 slots at 1 GHz: 4 register operations per 1000 ps, 4000 in a million.
TEST(Vpu, AddsForTransfersAtTheRateOfItsSlots) {
  VpuBench bench;
  bench.Elaborate();
  bench.Flow(bench.vpu.resource(), 4000, &bench.first);
  EXPECT_TRUE(bench.HappensAt(1'000'000, [&] { return bench.first.times.size() == 1; }));
}

TEST(Vpu, TransfersShareTheAdditions) {
  VpuBench bench;
  bench.Elaborate();
  bench.Flow(bench.vpu.resource(), 4000, &bench.first);
  bench.Flow(bench.vpu.resource(), 2000, &bench.second);
  // Half each: the second takes a million for 2000; then 2000 of the first are left, alone.
  EXPECT_TRUE(bench.HappensAt(1'000'000, [&] { return bench.second.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(1'500'000, [&] { return bench.first.times.size() == 1; }));
}

// What kernels occupy slows transfers no more than they slow kernels (vpu.h).
TEST(Vpu, BlocksAndTransfersDoNotSlowEachOther) {
  VpuBench bench;
  bench.Elaborate();
  bench.vpu.Occupy(Picoseconds(0), Picoseconds(5'000'000));
  bench.Flow(bench.vpu.resource(), 4000, &bench.first);
  EXPECT_TRUE(bench.HappensAt(1'000'000, [&] { return bench.first.times.size() == 1; }));
  EXPECT_EQ(bench.vpu.busy(), Picoseconds(5'000'000));
}

TEST(Vpu, TwoBlocksDoNotOverlap) {
  VpuBench bench;
  bench.vpu.Occupy(Picoseconds(0), Picoseconds(300));
  EXPECT_DEATH(bench.vpu.Occupy(Picoseconds(299), Picoseconds(1)),
               "two blocks in one execution slot");
}

}  // namespace
}  // namespace tpusim::chip
