#include "models/chip/die_link.h"

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

struct DieLinkBench : testing::Bench {
  explicit DieLinkBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
  DieLink link{"die_link", fluid, chip};
  testing::Note first, second;
};

// 1e11 B/s: 10 ps a byte.
TEST(DieLink, ATransferAloneHasAllOfIt) {
  DieLinkBench bench;
  bench.Elaborate();
  bench.Flow(bench.link.resource(), 1000, &bench.first);
  EXPECT_TRUE(bench.HappensAt(10'000, [&] { return bench.first.times.size() == 1; }));
}

TEST(DieLink, WhatLeavesTheDeviceSharesIt) {
  DieLinkBench bench;
  bench.Elaborate();
  bench.Flow(bench.link.resource(), 1000, &bench.first);
  bench.RunTo(5000);  // half of it
  bench.Flow(bench.link.resource(), 1000, &bench.second);
  // 500 bytes at 20 ps, then 500 of the second alone.
  EXPECT_TRUE(bench.HappensAt(15'000, [&] { return bench.first.times.size() == 1; }));
  EXPECT_TRUE(bench.HappensAt(20'000, [&] { return bench.second.times.size() == 1; }));
}

}  // namespace
}  // namespace tpusim::chip
