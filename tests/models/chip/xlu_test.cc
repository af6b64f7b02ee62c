#include "models/chip/xlu.h"

#include "tests/models/bench.h"

namespace tpusim::chip {
namespace {

struct XluBench : testing::Bench {
  explicit XluBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
  Xlu xlu{"xlu"};
};

TEST(Xlu, BusyTimesAddUp) {
  XluBench bench;
  bench.xlu.Occupy(Picoseconds(0), Picoseconds(300));
  bench.xlu.Occupy(Picoseconds(300), Picoseconds(40));
  EXPECT_EQ(bench.xlu.busy(), Picoseconds(340));
}

TEST(Xlu, TwoBlocksDoNotOverlap) {
  XluBench bench;
  bench.xlu.Occupy(Picoseconds(0), Picoseconds(300));
  EXPECT_DEATH(bench.xlu.Occupy(Picoseconds(299), Picoseconds(1)),
               "two blocks in one execution slot");
}

}  // namespace
}  // namespace tpusim::chip
