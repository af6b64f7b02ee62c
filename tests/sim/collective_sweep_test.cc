// A sample of the sweep, by a fixed seed; collective_sweep_long_test.cc runs all of it.
#include "tests/sim/collective_sweep.h"

#include <gtest/gtest.h>

#include <random>

namespace tpusim::testing {
namespace {

TEST(CollectiveSweep, ASampleOnSmallSlices) {
  const std::vector<SweepCase> cases = SweepCases(/*most_devices=*/64);
  std::mt19937 random(11);
  int64_t run = 0;
  for (int draw = 0; run < 250; ++draw) {
    ASSERT_LT(draw, 10'000) << "most cases have no such algorithm";
    const SweepCase& c = cases[random() % cases.size()];
    std::string difference;
    const SweepResult result = RunSweepCase(c, difference);
    if (result == SweepResult::kNoSuchAlgorithm) continue;
    ++run;
    EXPECT_EQ(result, SweepResult::kSame) << c.Name() << ": " << difference;
  }
}

// Cases that once ended in a deadlock: a fast-forward that did not see what was on its way.
TEST(CollectiveSweep, WhatOnceWentWrong) {
  using collectives::CollectiveKind;
  for (const SweepCase& c : std::vector<SweepCase>{
           {"v5e-8x8", {0, 1, 2}, CollectiveKind::kAllReduce, "best", 4096, Skew::kNone},
           {"v5e-8x8", {0}, CollectiveKind::kAllReduce, "best", 65536, Skew::kNone},
           {"v5e-4x4", {0, 1, 2}, CollectiveKind::kAllGather, "best", 65536, Skew::kStarts},
           {"v5e-4x4", {0, 1, 2}, CollectiveKind::kAllGather, "best", 65536, Skew::kStraggler}}) {
    std::string difference;
    EXPECT_EQ(RunSweepCase(c, difference), SweepResult::kSame) << c.Name() << ": " << difference;
  }
}

}  // namespace
}  // namespace tpusim::testing
