#include "models/chip/mxu.h"

#include "tests/models/bench.h"

namespace tpusim::chip {
namespace {

struct MxuBench : testing::Bench {
  explicit MxuBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
  Mxu mxu{"mxu"};
};

TEST(Mxu, ABlockMayBeginWhereTheOneBeforeEnds) {
  MxuBench bench;
  bench.mxu.Occupy(Picoseconds(1000), Picoseconds(500));
  bench.mxu.Occupy(Picoseconds(1500), Picoseconds(250));  // 1500 = 1000 + 500
  bench.mxu.Occupy(Picoseconds(9000), Picoseconds(0));
  EXPECT_EQ(bench.mxu.busy(), Picoseconds(750));
}

TEST(Mxu, TwoBlocksDoNotOverlap) {
  MxuBench bench;
  bench.mxu.Occupy(Picoseconds(1000), Picoseconds(500));
  EXPECT_DEATH(bench.mxu.Occupy(Picoseconds(1499), Picoseconds(1)),
               "two blocks in one execution slot");
}

}  // namespace
}  // namespace tpusim::chip
