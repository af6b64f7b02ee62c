#include "models/chip/sparse_core.h"

#include <optional>

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

struct SparseCoreBench : testing::Bench {
  explicit SparseCoreBench(sc_core::sc_module_name name = "bench") : Bench(name) {
    chip.devices = 2;
    chip.sparse_core.count = 4;  // two per device
    chip.sparse_core.tiles = 16;
    chip.sparse_core.lanes = 8;
    core.emplace("sparse_core", fluid, chip);
  }
  std::optional<SparseCore> core;
  testing::Note note;
};

// 2 x 16 x 8 = 256 additions per 1000 ps.
TEST(SparseCore, AddsForTransfersOnAllLanesOfTheDevice) {
  SparseCoreBench bench;
  bench.Elaborate();
  bench.Flow(bench.core->resource(), 2560, &bench.note);
  EXPECT_TRUE(bench.HappensAt(10'000, [&] { return bench.note.times.size() == 1; }));
}

}  // namespace
}  // namespace tpusim::chip
