// The whole sweep, in shares that can run side by side. A share prints how many cases it
// has run.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/sim/collective_sweep.h"

namespace tpusim::testing {
namespace {

constexpr int kShares = 64;

class WholeCollectiveSweep : public ::testing::TestWithParam<int> {};

TEST_P(WholeCollectiveSweep, FastIsSlow) {
  const std::vector<SweepCase> cases = SweepCases(/*most_devices=*/512);
  int64_t run = 0;
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += kShares) {
    std::string difference;
    const SweepResult result = RunSweepCase(cases[i], difference);
    if (result == SweepResult::kNoSuchAlgorithm) continue;
    ++run;
    EXPECT_EQ(result, SweepResult::kSame) << cases[i].Name() << ": " << difference;
  }
  std::cout << run << " of " << cases.size() / kShares << " cases have an algorithm\n";
}

INSTANTIATE_TEST_SUITE_P(Shares, WholeCollectiveSweep, ::testing::Range(0, kShares));

}  // namespace
}  // namespace tpusim::testing
