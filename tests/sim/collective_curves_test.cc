// Some sizes on some slices; collective_curves_long_test.cc has all.
#include "tests/sim/collective_curves.h"

namespace tpusim::lowering {
namespace {

class CollectiveCurves : public ::testing::TestWithParam<const char*> {};

TEST_P(CollectiveCurves, SimulatedIsTheClosedForm) {
  CheckCurves(GetParam(), {kKiB, 256 * kKiB, 4 * kMiB, 4 * kGiB});
}

INSTANTIATE_TEST_SUITE_P(Slices, CollectiveCurves,
                         ::testing::Values("v5e-4x2", "v5e-8x8", "v5e-16x16", "v5p-4x4x4",
                                           "v4-2x2x2", "v6e-4x4"),
                         TestName);

}  // namespace
}  // namespace tpusim::lowering
