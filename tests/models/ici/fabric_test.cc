#include "models/ici/fabric.h"

#include "tests/models/ici/network_bench.h"

namespace tpusim::ici {
namespace {

struct FabricBench : testing::Bench {
  explicit FabricBench(sc_core::sc_module_name name = "bench") : Bench(name) {}
  testing::Node one{0, fluid}, other{1, fluid};
  Fabric fabric{"fabric"};
};

// Devices of a class go the same way; device 2 is represented by the first.
TEST(Fabric, ARouteIsThatOfTheClassOfItsSender) {
  FabricBench bench;
  bench.fabric.AddDevice({&bench.one.endpoint, 0});
  bench.fabric.AddDevice({&bench.other.endpoint, 1});
  bench.fabric.AddDevice({&bench.one.endpoint, 0});
  Path near, far;
  near.timed_by = 10;
  far.timed_by = 11;
  bench.fabric.AddRoute({near, far});
  bench.fabric.AddRoute({far, near});
  EXPECT_EQ(bench.fabric.PathOf(0, 0).timed_by, 10);
  EXPECT_EQ(bench.fabric.PathOf(1, 0).timed_by, 11);
  EXPECT_EQ(bench.fabric.PathOf(2, 0).timed_by, 10);
  EXPECT_EQ(bench.fabric.PathOf(0, 1).timed_by, 11);
  EXPECT_EQ(&bench.fabric.EndpointOf(2), &bench.one.endpoint);
  EXPECT_EQ(&bench.fabric.EndpointOf(1), &bench.other.endpoint);
  EXPECT_EQ(bench.fabric.flights(), nullptr);
}

TEST(Endpoint, KnowsItsResourcesFromElaborationOn) {
  FabricBench bench;
  bench.Elaborate();
  EXPECT_EQ(bench.other.endpoint.hbm_resource().value, bench.other.hbm.served_by->value);
  EXPECT_EQ(bench.other.endpoint.vpu_resource().value, bench.other.vpu.served_by.value);
  EXPECT_EQ(bench.other.endpoint.die_link.size(), 0);
  EXPECT_EQ(bench.other.endpoint.multiplicity(), 1);
}

}  // namespace
}  // namespace tpusim::ici
