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
  LinkSpecs links;
  links[static_cast<int>(Direction::kXMinus)] = {BytesPerSecond(9e10), 1};
  links[static_cast<int>(Direction::kYPlus)] = {BytesPerSecond(5e10), 4};
  chip::Fluid fluid("fluid");
  const Fabric fabric;
  NoProbe probe;
  Router router("router", fluid, params, /*chip=*/0, links, fabric, probe);
  EXPECT_EQ(router.link(Direction::kXPlus), nullptr);
  EXPECT_EQ(fluid.network().resources(), 2);
  const Link& one = *router.link(Direction::kXMinus);
  const Link& four = *router.link(Direction::kYPlus);
  EXPECT_DOUBLE_EQ(fluid.network().Capacity(one.resource()), 9e10);
  EXPECT_DOUBLE_EQ(fluid.network().Capacity(four.resource()), 5e10);
  EXPECT_EQ(fluid.network().Name(four.resource()), "router.link_y_plus");
  EXPECT_EQ(four.copies(), 4);
}

TEST(Link, CountsBytesPerCopy) {
  chip::Fluid fluid("fluid");
  Link link("link", fluid, {0, Direction::kXPlus}, BytesPerSecond(1e9), /*copies=*/4);
  // Each of 8 equal devices sends 100 bytes over one of 4 equal links: 200 each.
  link.Sent(Bytes(100), /*senders=*/8);
  EXPECT_EQ(link.sent(), Bytes(200));
  EXPECT_EQ(link.received(), Bytes(0));
}

}  // namespace
}  // namespace tpusim::ici
