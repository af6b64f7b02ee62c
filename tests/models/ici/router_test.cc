// Links of a router. What transfers do on them is in tests/sim/pod_network_test.cc.
#include "models/ici/router.h"

#include <gtest/gtest.h>

namespace tpusim::ici {
namespace {

using configs::Direction;

struct NoProbe : FabricProbe {
  void RdmaEnded(const RdmaRecord&) override {}
};

// 4 x 2 with x wrapped.
configs::Config FourByTwo() {
  configs::Config config;
  config.chip.ici.link_bytes_per_second = BytesPerSecond(1e11);
  config.chip.ici.wrapped_efficiency = 0.9;
  config.chip.ici.unwrapped_efficiency = 0.5;
  config.topology = configs::Topology({4, 2, 1}, {true, false, false}, 1);
  return config;
}

TEST(Router, OwnsALinkPerNeighbour) {
  const configs::Config config = FourByTwo();
  chip::Fluid fluid("fluid");
  Fabric fabric;
  NoProbe probe;
  Router router("router", fluid, config, /*chip=*/3, fabric, probe);
  EXPECT_NE(router.link(Direction::kXPlus), nullptr);  // the wrap-around
  EXPECT_NE(router.link(Direction::kXMinus), nullptr);
  EXPECT_NE(router.link(Direction::kYPlus), nullptr);
  EXPECT_EQ(router.link(Direction::kYMinus), nullptr);
  EXPECT_EQ(router.link(Direction::kZPlus), nullptr);
  EXPECT_EQ(fluid.network().resources(), 3);
}

TEST(Router, LinksHaveTheRateOfTheirAxis) {
  const configs::Config config = FourByTwo();
  chip::Fluid fluid("fluid");
  Fabric fabric;
  NoProbe probe;
  Router router("router", fluid, config, /*chip=*/0, fabric, probe);
  const Link& wrapped = *router.link(Direction::kXMinus);
  const Link& open = *router.link(Direction::kYPlus);
  EXPECT_DOUBLE_EQ(fluid.network().Capacity(wrapped.resource()), 9e10);
  EXPECT_DOUBLE_EQ(fluid.network().Capacity(open.resource()), 5e10);
  EXPECT_EQ(fluid.network().Name(open.resource()), "router.link_y_plus");
}

}  // namespace
}  // namespace tpusim::ici
