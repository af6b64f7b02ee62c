// Steps that repeat, run as one: the same time alone, far fewer events.
#include <gtest/gtest.h>

#include <random>

#include "tests/sim/in_child.h"
#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests

TEST(SteadyRun, AThousandStepsAreAHandfulOfEvents) {
  isa::Kernel kernel;
  kernel.grid = {{1000, 1.0}};
  kernel.windows = {Input(1'000'000, 1), Output(500'000, 1)};
  kernel.block = Compute(100);
  const isa::PodProgram program = MakeProgram({Share(kernel)});
  SimulationOptions options;
  const Figures every = InChild(TestConfig(), program, options);
  options.every_step = false;
  const Figures fast = InChild(TestConfig(), program, options);
  EXPECT_EQ(fast.times, every.times);
  EXPECT_EQ(fast.bytes, every.bytes);
  // A kernel and 2000 transfers, each with a start and an end.
  EXPECT_EQ(every.events, 1 + 2 * 2000);
  EXPECT_LT(fast.events, 50);
}

TEST(SteadyRun, RandomKernelsTakeAsLongAsWithEveryStep) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  int64_t fewer = 0;
  for (int i = 0; i < 150; ++i) {
    isa::Kernel kernel;
    const int64_t dims = draw(1, 3);
    for (int64_t d = 0; d < dims; ++d) {
      kernel.grid.push_back({draw(1, 20), static_cast<double>(draw(4, 8)) / 8});
    }
    for (int64_t w = draw(1, 4); w > 0; --w) {
      const auto mask = static_cast<uint32_t>(draw(0, (1 << dims) - 1));
      const auto buffers = static_cast<int32_t>(draw(1, 2));
      kernel.windows.push_back(draw(0, 2) == 0 ? Output(draw(1, 300'000), mask, buffers)
                                               : Input(draw(1, 300'000), mask, buffers));
    }
    kernel.block = Compute(draw(0, 500));
    const isa::PodProgram program = MakeProgram({Share(kernel)});
    SimulationOptions options;
    const Figures every = InChild(TestConfig(), program, options);
    options.every_step = false;
    const Figures fast = InChild(TestConfig(), program, options);
    ASSERT_FALSE(every.times.empty()) << i;
    EXPECT_NEAR(static_cast<double>(fast.times[0]), static_cast<double>(every.times[0]), 10) << i;
    EXPECT_EQ(fast.bytes, every.bytes) << i;
    fewer += fast.events < every.events;
  }
  EXPECT_GT(fewer, 50);
}

}  // namespace
}  // namespace tpusim::sim
