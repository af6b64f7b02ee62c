// Some examples per chip; kernels_of_examples_long_test.cc has all.
#include "tests/sim/kernels_of_examples.h"

#include <gtest/gtest.h>

namespace tpusim::testing {
namespace {

class KernelsOfExamples : public ::testing::TestWithParam<size_t> {};

TEST_P(KernelsOfExamples, HaveOneTime) {
  // Slices of v4i have four chips, for which three of the examples are made.
  const ChipSlices slices = SlicesOfChips()[GetParam()];
  const size_t step = slices.slice == "v4i-2x2" ? 1 : 16;
  const KernelsCompared compared = CompareKernels(slices, 2 * GetParam() % step, step);
  EXPECT_GE(compared.programs, 3);
  EXPECT_GT(compared.kernels, 30);
  EXPECT_GT(compared.candidates, 10);
}

INSTANTIATE_TEST_SUITE_P(Chips, KernelsOfExamples,
                         ::testing::Range(size_t{0}, SlicesOfChips().size()), [](const auto& info) {
                           const std::string slice = SlicesOfChips()[info.param].slice;
                           return slice.substr(0, slice.find('-'));
                         });

}  // namespace
}  // namespace tpusim::testing
