// The time of a kernel, computed in every way there is.
//
// Every kernel of a compiled program has four answers: the bound that the tile search and
// fusion start from, the price of the candidate that it was, the closed form, and the machine
// with nothing else on it. The bounds are at most the price; the other three are one number, to
// the picosecond.
#ifndef TPUSIM_TESTS_SIM_KERNELS_OF_EXAMPLES_H_
#define TPUSIM_TESTS_SIM_KERNELS_OF_EXAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tpusim::testing {

// A slice, if the chip has one that is large enough for every example, and one chip of them.
struct ChipSlices {
  std::string slice, one;
};
std::vector<ChipSlices> SlicesOfChips();

struct KernelsCompared {
  int64_t programs = 0;    // that were compiled
  int64_t kernels = 0;     // different ones
  int64_t candidates = 0;  // of them such that fusion could have thought of
};
// The examples number `first`, `first` + `step` and so on, compiled for the chip. What differs is
// a failure of the test.
KernelsCompared CompareKernels(const ChipSlices& slices, size_t first, size_t step);

}  // namespace tpusim::testing

#endif  // TPUSIM_TESTS_SIM_KERNELS_OF_EXAMPLES_H_
