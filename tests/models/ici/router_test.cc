// Links of a router. What transfers do on them is in tests/sim/pod_network_test.cc.
#include "models/ici/router.h"

#include <gtest/gtest.h>

namespace tpusim::ici {
namespace {

using configs::Direction;

struct NoProbe : FabricProbe {
  void RdmaEnded(const RdmaRecord&) override {}
};

TEST(Router, OwnsTheLinksThatItIsGiven) {
  const configs::ChipParams params;
  LinkRates links;
  links[static_cast<int>(Direction::kXMinus)] = BytesPerSecond(9e10);
  links[static_cast<int>(Direction::kYPlus)] = BytesPerSecond(5e10);
  events::Fluid fluid("fluid");
  const isa::PodProgram program;
  NoProbe probe;
  Router router("router", fluid, params, /*chip=*/0, links, program, probe);
  EXPECT_EQ(router.link(Direction::kXPlus), nullptr);
  EXPECT_EQ(fluid.network().resources(), 2);
  const Link& one = *router.link(Direction::kXMinus);
  const Link& other = *router.link(Direction::kYPlus);
  EXPECT_DOUBLE_EQ(fluid.network().Capacity(one.resource()), 9e10);
  EXPECT_DOUBLE_EQ(fluid.network().Capacity(other.resource()), 5e10);
  EXPECT_EQ(fluid.network().Name(other.resource()), "router.link_y_plus");
}

TEST(Link, CountsBytesAtBothEnds) {
  events::Fluid fluid("fluid");
  Link link("link", fluid, {0, Direction::kXPlus}, BytesPerSecond(1e9));
  link.Sent(Bytes(100));
  link.Sent(Bytes(100));
  link.Received(Bytes(100));
  EXPECT_EQ(link.sent(), Bytes(200));
  EXPECT_EQ(link.received(), Bytes(100));
}

}  // namespace
}  // namespace tpusim::ici
