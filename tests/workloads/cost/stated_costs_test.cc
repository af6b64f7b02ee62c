// Costs in front of a model by which everything takes 100 ps behind 10, half of HBM at 400 B/s.
#include "workloads/cost/stated_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/status_macros.h"
#include "tests/workloads/passes/fake_costs.h"
#include "tests/workloads/passes/small_module.h"

namespace tpusim::cost {
namespace {

using hlo::Opcode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Modelled : passes::FakeCosts {
  bool has_rule = true;

  absl::StatusOr<Work> WorkOf(const hlo::Instruction& i) override {
    if (!has_rule) return UserError("no rule for " + i.name());
    Work work;
    work.latency = Picoseconds(10);
    work.time = Picoseconds(100);
    work.share[kHbmResource] = 0.5;
    work.rate = BytesPerSecond(400);
    return work;
  }
  absl::StatusOr<Work> TransferOf(const hlo::Instruction& i) override { return WorkOf(i); }
};

struct StatedCostsTest : ::testing::Test {
  passes::SmallModule m;
  Modelled model;
  hlo::Instruction* p = m.Parameter({8});
  hlo::Instruction* tanh = m.Add(Opcode::kTanh, {8}, {p});  // of the name "tanh"
  hlo::Instruction* negate = m.Add(Opcode::kNegate, {8}, {tanh});
};

// Twice the time: a quarter of HBM, at half the rate.
TEST_F(StatedCostsTest, TheSameBytesMoveInTheStatedTime) {
  StatedCosts costs(model, {{"tanh", Picoseconds(200), Picoseconds(30)}});
  const Work work = costs.WorkOf(*tanh).value();
  EXPECT_EQ(work.latency, Picoseconds(30));
  EXPECT_EQ(work.time, Picoseconds(200));
  EXPECT_DOUBLE_EQ(work.share[kHbmResource], 0.25);
  EXPECT_DOUBLE_EQ(work.rate.value(), 200);
  EXPECT_EQ(costs.TransferOf(*tanh)->alone(), Picoseconds(230));
}

// A fifth of the time would be 2.5 of all of HBM.
TEST_F(StatedCostsTest, NothingUsesMoreThanAllOfAResource) {
  StatedCosts costs(model, {{"tanh", Picoseconds(20)}});
  EXPECT_EQ(costs.WorkOf(*tanh)->share[kHbmResource], 1);
  EXPECT_EQ(costs.WorkOf(*tanh)->alone(), Picoseconds(20));
}

TEST_F(StatedCostsTest, TheFirstThatMatchesCounts) {
  StatedCosts costs(model,
                    {{"t*", Picoseconds(1)}, {"tanh", Picoseconds(2)}, {"?e*", Picoseconds(3)}});
  EXPECT_EQ(costs.WorkOf(*tanh)->time, Picoseconds(1));
  EXPECT_EQ(costs.WorkOf(*negate)->time, Picoseconds(3));
  EXPECT_THAT(costs.Unused(), ElementsAre("tanh"));
}

TEST_F(StatedCostsTest, EverythingElseIsTheModels) {
  StatedCosts costs(model, {{"tanh", Picoseconds(1)}});
  EXPECT_EQ(costs.WorkOf(*negate)->alone(), Picoseconds(110));
  model.trips = 7;
  EXPECT_EQ(costs.TripsOf(*negate).value(), 7);
  EXPECT_THAT(costs.Unused(), ElementsAre("tanh"));
}

// A parameter is no kernel.
TEST_F(StatedCostsTest, WhatTakesNoTimeIsNotPriced) {
  StatedCosts costs(model, {{"p", Picoseconds(5)}});
  EXPECT_EQ(costs.WorkOf(*p)->time, Picoseconds(100));  // as the model says
  EXPECT_THAT(costs.Unused(), ElementsAre("p"));
}

TEST_F(StatedCostsTest, WhatHasNoRuleTakesWhatIsStated) {
  model.has_rule = false;
  StatedCosts costs(model, {{"tanh", Picoseconds(5)}});
  EXPECT_EQ(costs.WorkOf(*tanh)->alone(), Picoseconds(5));
  EXPECT_EQ(Message(costs.WorkOf(*negate).status()), "no rule for negate");
  EXPECT_THAT(costs.Unused(), IsEmpty());
}

TEST_F(StatedCostsTest, AKernelIsLaunchedInItsLatency) {
  StatedCosts costs(model, {{"tanh", Picoseconds(200), Picoseconds(30)}});
  EXPECT_EQ(costs.KernelOf(*tanh)->launch, Picoseconds(30));
  EXPECT_EQ(costs.KernelTime(*tanh).value(), Picoseconds(230));
}

}  // namespace
}  // namespace tpusim::cost
