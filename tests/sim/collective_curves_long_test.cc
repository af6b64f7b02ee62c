// Runs every size on the slices of docs/validation/collective-curves.md.
#include "tests/sim/collective_curves.h"

namespace tpusim::collectives {
namespace {

class AllCollectiveCurves : public ::testing::TestWithParam<const char*> {};

TEST_P(AllCollectiveCurves, SimulatedIsTheClosedForm) {
  std::vector<int64_t> sizes;
  for (int64_t v = kKiB; v <= 4 * kGiB; v *= 4) sizes.push_back(v);
  CheckCurves(GetParam(), sizes);
}

INSTANTIATE_TEST_SUITE_P(Slices, AllCollectiveCurves,
                         ::testing::Values("v5e-4x2", "v5e-4x4", "v5e-8x8", "v5e-16x16",
                                           "v5p-4x4x4", "v5p-8x8x8", "v4-2x2x2", "v4-4x4x4",
                                           "v6e-4x4", "v6e-16x16", "v5e-8x16", "v5p-4x4x8",
                                           "v5p-4x4x12", "v5p-8x8x16", "v4-4x8x8", "v7x-2x2x1",
                                           "v7x-4x4x4", "v7x-4x4x8", "v3-4x4", "v3-8x8"),
                         TestName);

}  // namespace
}  // namespace tpusim::collectives
