// Some sizes on some slices; collective_curves_long_test.cc has all.
#include "tests/sim/collective_curves.h"

namespace tpusim::collectives {
namespace {

class CollectiveCurves : public ::testing::TestWithParam<const char*> {};

TEST_P(CollectiveCurves, SimulatedIsTheClosedForm) {
  CheckCurves(GetParam(), {kKiB, 256 * kKiB, 4 * kMiB, 4 * kGiB});
}

INSTANTIATE_TEST_SUITE_P(Slices, CollectiveCurves,
                         ::testing::Values("v5e-4x2", "v5e-4x8", "v5e-8x8", "v5e-16x16",
                                           "v5p-4x4x4", "v5p-2x2x4", "v5p-4x4x8", "v4-2x2x2",
                                           "v6e-4x4", "v7x-2x2x4", "v7x-4x4x4", "v3-4x4"),
                         TestName);

// One chip of each class instead of all: the same to 10 ps.
TEST(CollectiveFolding, ColorsInRotatedOrders) {
  for (const char* slice : {"v5p-4x4x8", "v7x-4x4x4"}) {
    const configs::Config config = *configs::LoadConfig(slice, {});
    isa::PodProgram program;
    const auto lowered =
        LowerCollective(config, OverAll(config, CollectiveKind::kAllReduce, 64 * kMiB), program);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_TRUE(lowered->info.algorithm.starts_with("3-color")) << lowered->info.algorithm;
    RunAlone(*lowered, program);
    sim::SimulationOptions unfolded;
    unfolded.folding = sim::Folding::kOff;
    const testing::Figures one = testing::InChild(config, program, {});
    const testing::Figures all = testing::InChild(config, program, unfolded);
    ASSERT_FALSE(one.times.empty());
    ASSERT_FALSE(all.times.empty());
    EXPECT_NEAR(static_cast<double>(one.times[0]), static_cast<double>(all.times[0]), 10) << slice;
    EXPECT_LT(20 * one.events, all.events) << slice;
  }
}

}  // namespace
}  // namespace tpusim::collectives
