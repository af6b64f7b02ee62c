// Transfers and computation of every step of a kernel. Times are tested in
// tests/sim/pod_kernel_test.cc.
#include "models/timing/kernel_steps.h"

#include <gtest/gtest.h>

namespace tpusim::timing {
namespace {

isa::Window MakeWindow(isa::WindowKind kind, int64_t bytes, uint32_t moves_with,
                       int32_t buffers = 2) {
  isa::Window window;
  window.kind = kind;
  window.bytes = Bytes(bytes);
  window.moves_with = moves_with;
  window.buffers = buffers;
  return window;
}

TEST(KernelSteps, OneStepMovesEverything) {
  isa::Kernel kernel;
  kernel.windows = {MakeWindow(isa::WindowKind::kInput, 10, 0),
                    MakeWindow(isa::WindowKind::kInput, 7, 0, 1),
                    MakeWindow(isa::WindowKind::kOutput, 5, 0)};
  KernelSteps steps;
  steps.Reset(kernel);
  EXPECT_EQ(steps.steps(), 1);
  EXPECT_EQ(steps.At(0).fetch_double.hbm(), Bytes(10));
  EXPECT_EQ(steps.At(0).fetch_single.hbm(), Bytes(7));
  EXPECT_EQ(steps.At(0).write.hbm(), Bytes(5));
  EXPECT_EQ(steps.At(0).fraction, 1);
  EXPECT_EQ(steps.At(1).fetch_double.hbm(), Bytes(0));
}

TEST(KernelSteps, WalksRowMajorWithPartialLastBlocks) {
  // Grid 2 x 3, the last of d1 is a quarter, of d0 a half. A moves with d0, B with
  // d1, the result with both.
  isa::Kernel kernel;
  kernel.grid = {{2, 0.5}, {3, 0.25}};
  kernel.windows = {MakeWindow(isa::WindowKind::kInput, 1000, 1),
                    MakeWindow(isa::WindowKind::kInput, 80, 2),
                    MakeWindow(isa::WindowKind::kOutput, 16, 3)};
  struct Expected {
    double fraction;
    int64_t fetch, write;
    uint32_t changed;
  };
  const Expected expected[] = {
      {1, 1000 + 80, 16, ~0U},  // (0,0)
      {1, 80, 16, 2},           // (0,1)
      {0.25, 20, 4, 2},         // (0,2): B and the result are quarters
      {0.5, 500 + 80, 8, 3},    // (1,0): A and the result are halves
      {0.5, 80, 8, 2},          // (1,1)
      {0.125, 20, 2, 2},        // (1,2)
  };
  KernelSteps steps;
  steps.Reset(kernel);
  for (int64_t s = 0; s < 6; ++s) {
    const StepPlan plan = steps.At(s);
    EXPECT_EQ(plan.fraction, expected[s].fraction) << s;
    EXPECT_EQ(plan.fetch_double.hbm().value(), expected[s].fetch) << s;
    EXPECT_EQ(plan.write.hbm().value(), expected[s].write) << s;
    EXPECT_EQ(plan.changed, expected[s].changed) << s;
    steps.At(s + 2);  // looking ahead changes nothing
    EXPECT_EQ(steps.At(s + 1).fetch_single.hbm(), Bytes(0)) << s;
  }
}

TEST(KernelSteps, AResultThatStaysIsWrittenWhenItsBlockIsComplete) {
  // The inner dimension accumulates: written after steps 1 and 3. A dimension of
  // one block never changes.
  isa::Kernel kernel;
  kernel.grid = {{2, 1.0}, {1, 1.0}, {2, 1.0}};
  kernel.windows = {MakeWindow(isa::WindowKind::kOutput, 16, 1 | 2),
                    MakeWindow(isa::WindowKind::kInput, 9, 2)};
  KernelSteps steps;
  steps.Reset(kernel);
  const int64_t writes[] = {0, 16, 0, 16};
  const int64_t fetches[] = {9, 0, 0, 0};
  for (int64_t s = 0; s < 4; ++s) {
    EXPECT_EQ(steps.At(s).write.hbm().value(), writes[s]) << s;
    EXPECT_EQ(steps.At(s).fetch_double.hbm().value(), fetches[s]) << s;
  }
}

TEST(KernelSteps, FractionsRoundToNearest) {
  EXPECT_EQ(Scaled(Bytes(5), 0.5), Bytes(3));
  EXPECT_EQ(Scaled(Picoseconds(1000), 1.0 / 3), Picoseconds(333));
  EXPECT_EQ(Scaled(Picoseconds(7), 1), Picoseconds(7));
}

}  // namespace
}  // namespace tpusim::timing
