#include "models/events/fluid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>

#include "models/events/sim_time.h"

namespace tpusim::events {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr double kNoCap = std::numeric_limits<double>::infinity();

// One resource of 1e12 B/s: a byte takes 1 ps alone.
class FluidTest : public ::testing::Test, public FlowListener {
 protected:
  void Start(double bytes, uint64_t tag) {
    const std::array<flow::ResourceUse, 1> uses = {{{memory_, 1.0}}};
    fluid_.Start(bytes, kNoCap, uses, this, tag);
  }
  // Every flow below 3 starts its successor at its end.
  void VisitFlow(uint64_t, steady::StateVisitor&) override {}
  int64_t OrderOfFlow(uint64_t) const override { return 0; }
  void FlowEnded(uint64_t tag) override {
    ended_.emplace_back(tag, Now().value());
    if (chained_ && tag < 3) Start(1000, tag + 1);
  }

  Fluid fluid_{"fluid"};
  flow::ResourceId memory_ = fluid_.network().AddResource("memory", 1e12);
  std::vector<std::pair<uint64_t, int64_t>> ended_;
  bool chained_ = false;
};

TEST_F(FluidTest, AloneAFlowTakesItsTransferTime) {
  Start(12345, 1);
  sc_core::sc_start();
  EXPECT_THAT(ended_, ElementsAre(Pair(1, 12345)));
  EXPECT_EQ(fluid_.events(), 2);
}

TEST_F(FluidTest, FlowsOfOneInstantAreSolvedOnce) {
  Start(1000, 1);
  Start(1000, 2);
  Start(2000, 3);
  sc_core::sc_start();
  // A third of the rate each until 3000; then 3 has its 1000 left alone.
  EXPECT_THAT(ended_, ElementsAre(Pair(1, 3000), Pair(2, 3000), Pair(3, 4000)));
  // At 0 for the starts, at 3000 and 4000 for the ends.
  EXPECT_EQ(fluid_.network().statistics().solves, 3);
}

TEST_F(FluidTest, AnEndMayStartTheNextInTheSameInstant) {
  chained_ = true;
  Start(1000, 1);
  sc_core::sc_start();
  EXPECT_THAT(ended_, ElementsAre(Pair(1, 1000), Pair(2, 2000), Pair(3, 3000)));
  // An end and the start that it causes are one change.
  EXPECT_EQ(fluid_.network().statistics().solves, 4);
}

TEST_F(FluidTest, NoBytesTakeNoTime) {
  chained_ = true;
  Start(0, 2);
  sc_core::sc_start();
  EXPECT_THAT(ended_, ElementsAre(Pair(2, 0), Pair(3, 1000)));
}

}  // namespace
}  // namespace tpusim::events
