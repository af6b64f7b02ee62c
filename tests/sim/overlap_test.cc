// Figures of collectives add up, whatever is reported of the compute slots.
#include "sim/overlap.h"

#include <gtest/gtest.h>

#include <map>

namespace tpusim::sim {
namespace {

constexpr int32_t kFusion = 0, kPermute = 1, kWait = 2;

// A fusion, a permute beside it, and the wait for the permute.
isa::ProgramInfo PermuteBesideFusion() {
  isa::ProgramInfo info;
  info.ops.resize(3);
  info.ops[kPermute].collective = 0;
  info.ops[kWait].waits_for = kPermute;
  info.collectives.emplace_back().kind = "collective-permute";
  return info;
}

class OverlapTest : public ::testing::Test {
 protected:
  void SettleAt(int64_t now, int64_t compute) {
    overlap_.Settle(
        Picoseconds(now), Picoseconds(compute),
        [this](int32_t op) -> OpTotals& { return totals_[op]; },
        [this](int32_t, int32_t, Picoseconds time) { hidden_ += time; });
  }

  struct Expected {
    int64_t total = 0, exposed = 0, hidden = 0;
  };
  void ExpectPermute(const Expected& expected) {
    EXPECT_EQ(totals_[kPermute].total, Picoseconds(expected.total));
    EXPECT_EQ(totals_[kPermute].exposed, Picoseconds(expected.exposed));
    EXPECT_EQ(hidden_, Picoseconds(expected.hidden));
  }

  const isa::ProgramInfo info_ = PermuteBesideFusion();
  const CollectiveKinds kinds_{info_};
  Overlap overlap_{info_, kinds_};
  std::map<int32_t, OpTotals> totals_;
  Picoseconds hidden_{0};
};

// Behind a steady state that is not exactly one, slots may turn out to have been busy for less.
TEST_F(OverlapTest, WhatWasToldTooMuchOfComputeIsTakenBack) {
  overlap_.CollectiveBegan(kPermute);
  overlap_.MainBegan(kFusion);
  SettleAt(100, 90);
  SettleAt(120, 80);
  ExpectPermute({.total = 120, .exposed = 40, .hidden = 80});
  EXPECT_EQ(overlap_.exposed(), Picoseconds(40));
}

TEST_F(OverlapTest, WhatWasToldTooMuchOfAWaitIsTakenBack) {
  overlap_.CollectiveBegan(kPermute);
  overlap_.MainBegan(kWait);
  SettleAt(100, 0);
  SettleAt(120, 50);
  const OpTotals& permute = totals_[kPermute];
  ExpectPermute({.total = 120, .exposed = 70, .hidden = 50});
  EXPECT_EQ(permute.behind, Picoseconds(0));
  EXPECT_EQ(permute.waited, Picoseconds(70));
}

}  // namespace
}  // namespace tpusim::sim
