// Kernels of every example on every chip.
#include <gtest/gtest.h>

#include "tests/sim/kernels_of_examples.h"

namespace tpusim::testing {
namespace {

class KernelsOfAllExamples : public ::testing::TestWithParam<size_t> {};

TEST_P(KernelsOfAllExamples, HaveOneTime) {
  const ChipSlices slices = SlicesOfChips()[GetParam()];
  const KernelsCompared compared = CompareKernels(slices, 0, 1);
  const bool small = slices.slice == "v4i-2x2";
  EXPECT_GE(compared.programs, small ? 3 : 90);
  EXPECT_GT(compared.kernels, small ? 40 : 500);
  EXPECT_GT(compared.candidates, small ? 30 : 200);
}

INSTANTIATE_TEST_SUITE_P(Chips, KernelsOfAllExamples,
                         ::testing::Range(size_t{0}, SlicesOfChips().size()), [](const auto& info) {
                           const std::string slice = SlicesOfChips()[info.param].slice;
                           return slice.substr(0, slice.find('-'));
                         });

}  // namespace
}  // namespace tpusim::testing
