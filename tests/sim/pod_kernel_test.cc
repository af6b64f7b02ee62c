// One device: kernels, blocks and local transfers, to the picosecond.
//
// Times in comments are in microseconds; see pod_testing.h for the chip.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests
using ::testing::HasSubstr;

int64_t RunKernel(const isa::Kernel& kernel) {
  const Timeline timeline = MustSimulate(TestConfig(), MakeProgram({Share(kernel)}));
  return timeline.step_time.value();
}

TEST(PodKernel, EmptyProgramTakesNoTime) {
  const Timeline timeline = MustSimulate(TestConfig(), MakeProgram({nullptr}));
  EXPECT_EQ(timeline.step_time, Picoseconds(0));
  EXPECT_EQ(timeline.events, 0);
}

TEST(PodKernel, OneStep) {
  // launch 2 + latency 0.5 + fetch 1 + compute 1 + latency 0.5 + write 0.5.
  isa::Kernel kernel;
  kernel.windows = {Input(1'000'000, 0), Output(500'000, 0)};
  kernel.block = Compute(1000);
  const Timeline timeline = MustSimulate(TestConfig(), MakeProgram({Share(kernel)}));
  EXPECT_EQ(timeline.step_time, Nanoseconds(5500));
  EXPECT_EQ(timeline.devices[0].vpu_busy, Microseconds(1));
  EXPECT_EQ(timeline.devices[0].compute_busy, Microseconds(1));
  EXPECT_EQ(timeline.devices[0].mxu_busy, Microseconds(0));
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(1'500'000));
  // One instruction, two flows started and ended.
  EXPECT_EQ(timeline.events, 5);
}

TEST(PodKernel, WhatIsCalledRunsAsIfItStoodThere) {
  isa::Kernel kernel;
  kernel.windows = {Input(1'000'000, 0), Output(500'000, 0)};
  kernel.block = Compute(1000);
  const isa::Call call{Share(isa::Call{Share(kernel)})};
  const Timeline timeline = MustSimulate(TestConfig(), MakeProgram({Share(call)}));
  // As above; a call is no instruction.
  EXPECT_EQ(timeline.step_time, Nanoseconds(5500));
  EXPECT_EQ(timeline.events, 5);
}

TEST(PodKernel, TwoStepsBoundByCompute) {
  // F0 moves 2.5-3.5, F1 behind it 3.5-4.5. Step 0 3.5-6.5, step 1 6.5-9.5.
  // W1 is issued at 9.5 and moves 10.0-10.5.
  isa::Kernel kernel;
  kernel.grid = {{2, 1.0}};
  kernel.windows = {Input(1'000'000, 1), Output(500'000, 1)};
  kernel.block = Compute(3000);
  EXPECT_EQ(RunKernel(kernel), 10'500'000);
}

TEST(PodKernel, ThreeStepsBoundByMemory) {
  // F0 2.5-3.5, F1 3.5-4.5. Step 0 3.5-3.6 issues W0 and F2, which move after
  // F1: W0 4.5-5.0, F2 5.0-6.0. Step 1 4.5-4.6 issues W1: 6.0-6.5. Step 2
  // 6.0-6.1 issues W2, whose latency lasts until 6.6: 6.6-7.1.
  isa::Kernel kernel;
  kernel.grid = {{3, 1.0}};
  kernel.windows = {Input(1'000'000, 1), Output(500'000, 1)};
  kernel.block = Compute(100);
  EXPECT_EQ(RunKernel(kernel), 7'100'000);
}

TEST(PodKernel, SingleBufferedInputIsFetchedBetweenSteps) {
  // F0 2.5-3.5, step 0 3.5-4.5, F1 issued at 4.5: 5.0-6.0, step 1 6.0-7.0.
  isa::Kernel kernel;
  kernel.grid = {{2, 1.0}};
  kernel.windows = {Input(1'000'000, 1, /*buffers=*/1)};
  kernel.block = Compute(1000);
  EXPECT_EQ(RunKernel(kernel), 7'000'000);
}

TEST(PodKernel, SingleBufferedOutputIsWrittenBetweenSteps) {
  // Step 0 2.0-3.0, W0 3.5-4.0, step 1 4.0-5.0, W1 5.5-6.0.
  isa::Kernel kernel;
  kernel.grid = {{2, 1.0}};
  kernel.windows = {Output(500'000, 1, /*buffers=*/1)};
  kernel.block = Compute(1000);
  EXPECT_EQ(RunKernel(kernel), 6'000'000);
}

TEST(PodKernel, BlockWaitsForADrainingBuffer) {
  // Two buffers, writes of 2: step 0 2.0-2.1, W0 2.6-4.6; step 1 2.1-2.2,
  // W1 4.6-6.6; step 2 needs the buffer of W0: 4.6-4.7, W2 6.6-8.6; step 3
  // needs that of W1: 6.6-6.7, W3 8.6-10.6.
  isa::Kernel kernel;
  kernel.grid = {{4, 1.0}};
  kernel.windows = {Output(2'000'000, 1)};
  kernel.block = Compute(100);
  EXPECT_EQ(RunKernel(kernel), 10'600'000);
}

TEST(PodKernel, WindowsMoveOnlyWithTheirDimensions) {
  // Grid 2x2. A (1 MB) moves with d0, B (0.2 MB) with d1. Compute 1 per step.
  // F0 = A+B 2.5-3.7, F1 = B 3.7-3.9. Step 0 3.7-4.7 issues F2 = A+B 5.2-6.4.
  // Step 1 4.7-5.7 issues F3 = B, ready 6.2: 6.4-6.6. Step 2 6.4-7.4, step 3
  // 7.4-8.4. Bytes: 2 A + 4 B.
  isa::Kernel kernel;
  kernel.grid = {{2, 1.0}, {2, 1.0}};
  kernel.windows = {Input(1'000'000, 1), Input(200'000, 2)};
  kernel.block = Compute(1000);
  const Timeline timeline = MustSimulate(TestConfig(), MakeProgram({Share(kernel)}));
  EXPECT_EQ(timeline.step_time, Nanoseconds(8400));
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(2'800'000));
}

TEST(PodKernel, PartialLastBlockComputesAndMovesLess) {
  // F0 2.5-3.5, F1 is half: 3.5-4.0. Step 0 3.5-4.5, step 1 is half: 4.5-5.0.
  isa::Kernel kernel;
  kernel.grid = {{2, 0.5}};
  kernel.windows = {Input(1'000'000, 1)};
  kernel.block = Compute(1000);
  EXPECT_EQ(RunKernel(kernel), 5'000'000);
}

TEST(PodKernel, OperandsInVmemMoveNothing) {
  isa::Kernel kernel;
  kernel.grid = {{3, 1.0}};
  kernel.windows = {Input(1'000'000, 1), Output(1'000'000, 1)};
  for (isa::Window& window : kernel.windows) window.space = isa::MemorySpace::kVmem;
  kernel.block = Compute(1000);
  EXPECT_EQ(RunKernel(kernel), 3'000'000);  // three steps, no launch
}

TEST(PodKernel, MatrixWorkIsBusyWithoutItsLatency) {
  // 256 rows through one weight tile keep the array busy for 256 cycles; the
  // last row comes out 100 cycles later.
  configs::Config config = TestConfig();
  config.chip.mxu.result_latency_cycles = 100;
  isa::Block block;
  block.mxu.m = 256;
  block.mxu.k = 128;
  block.mxu.n = 128;
  const Timeline timeline = MustSimulate(config, MakeProgram({Share(block)}));
  EXPECT_EQ(timeline.devices[0].mxu_busy, Nanoseconds(256));
  EXPECT_EQ(timeline.devices[0].compute_busy, Nanoseconds(256));
  EXPECT_EQ(timeline.step_time,
            ToTime(timing::TimeBlock(config.chip, block).total, config.chip.clock));
  EXPECT_GE(timeline.step_time, Nanoseconds(356));
}

// The recurrence of kernel_steps.h, written down plainly over arrays.
int64_t Replay(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  const int64_t steps = kernel.Steps();
  const size_t dims = kernel.grid.size();
  const auto index = [&](int64_t step) {
    std::vector<int64_t> at(dims);
    for (size_t d = dims; d-- > 0; step /= kernel.grid[d].count) {
      at[d] = step % kernel.grid[d].count;
    }
    return at;
  };
  const auto moves = [&](const isa::Window& window, int64_t step) {  // at `step`, or first
    if (step == 0) return true;
    const std::vector<int64_t> now = index(step), before = index(step - 1);
    for (size_t d = 0; d < dims; ++d) {
      if ((window.moves_with >> d & 1) != 0 && now[d] != before[d]) return true;
    }
    return false;
  };
  const auto fraction = [&](uint32_t mask, int64_t step) {
    const std::vector<int64_t> at = index(step);
    double product = 1;
    for (size_t d = 0; d < dims; ++d) {
      if ((mask >> d & 1) != 0 && at[d] == kernel.grid[d].count - 1) {
        product *= kernel.grid[d].last_fraction;
      }
    }
    return product;
  };
  const auto bytes = [&](const isa::Window& window, int64_t step) {
    return std::llround(static_cast<double>(window.bytes.value()) *
                        fraction(window.moves_with, step));
  };
  const auto fetch = [&](int64_t step, bool twice) {
    int64_t sum = 0;
    if (step >= steps) return sum;
    for (const isa::Window& w : kernel.windows) {
      if (w.kind == isa::WindowKind::kInput && (w.buffers > 1) == twice && moves(w, step)) {
        sum += bytes(w, step);
      }
    }
    return sum;
  };

  int64_t channel = 0;  // end of the last transfer
  const auto transfer = [&](int64_t issue, int64_t amount, bool write = false) {
    if (amount == 0) return int64_t{0};
    const Picoseconds latency = write ? chip.dma.write_start_latency : chip.dma.start_latency;
    const int64_t gap = write || channel == 0 ? 0 : chip.dma.turnaround.value();
    channel = std::max(issue + latency.value(), channel + gap) + amount;  // 1 ps a byte
    return channel;
  };
  std::vector<int64_t> fetched(static_cast<size_t>(steps) + 2, 0);
  // Ends of the write-backs of each window's blocks.
  std::vector<std::vector<int64_t>> written(kernel.windows.size());

  const int64_t launched = kernel.windows.empty() ? 0 : chip.tensor_core.kernel_launch.value();
  fetched[0] = transfer(launched, fetch(0, false) + fetch(0, true));
  fetched[1] = transfer(launched, fetch(1, true));
  int64_t end = launched;
  for (int64_t s = 0; s < steps; ++s) {
    int64_t start = std::max(end, fetched[s]);
    for (size_t w = 0; w < kernel.windows.size(); ++w) {
      const isa::Window& window = kernel.windows[w];
      if (window.kind == isa::WindowKind::kInput || !moves(window, s)) continue;
      const auto done = static_cast<int64_t>(written[w].size());
      if (done >= window.buffers) start = std::max(start, written[w][done - window.buffers]);
    }
    end = start + std::llround(static_cast<double>(timing::StepTime(chip, kernel.block).value()) *
                               fraction(~0U, s));
    int64_t leaving = 0;
    std::vector<size_t> leavers;
    for (size_t w = 0; w < kernel.windows.size(); ++w) {
      const isa::Window& window = kernel.windows[w];
      if (window.kind == isa::WindowKind::kInput) continue;
      if (s + 1 < steps && !moves(window, s + 1)) continue;
      leaving += bytes(window, s);
      leavers.push_back(w);
    }
    const int64_t out = transfer(end, leaving, /*write=*/true);
    for (const size_t w : leavers) written[w].push_back(out);
    if (s + 1 < steps) {
      fetched[s + 1] = std::max(fetched[s + 1], transfer(end, fetch(s + 1, false)));
    }
    fetched[s + 2 < steps ? s + 2 : steps] = transfer(end, fetch(s + 2, true));
  }
  return std::max(end, channel);
}

void CheckRandomKernels(configs::Config config) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  std::vector<isa::Kernel> kernels;
  for (int i = 0; i < 200; ++i) {
    isa::Kernel kernel;
    const int64_t dims = draw(0, 3);
    for (int64_t d = 0; d < dims; ++d) {
      const int64_t eighths = draw(0, 1) == 0 ? 8 : draw(1, 8);
      // Long dimensions, so that KernelTime has something to skip.
      const int64_t longest = draw(0, 2) == 0 ? 15 : 5;
      kernel.grid.push_back({draw(1, longest), static_cast<double>(eighths) / 8});
    }
    const int64_t windows = draw(0, 4);
    for (int64_t w = 0; w < windows; ++w) {
      const auto mask = static_cast<uint32_t>(draw(0, (1 << dims) - 1));
      const auto buffers = static_cast<int32_t>(draw(1, 3));
      const int64_t bytes = draw(1, 2'000'003);
      kernel.windows.push_back(draw(0, 2) == 0 ? Output(bytes, mask, buffers)
                                               : Input(bytes, mask, buffers));
    }
    kernel.block = Compute(draw(0, 2000));
    kernels.push_back(kernel);
  }
  config.chip.vmem.bytes = Bytes(100'000'000);
  isa::PodProgram program = MakeProgram({nullptr});
  isa::Body body;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const int32_t op = AddOp(program, "kernel");
    body.push_back({isa::Label{op, true}});
    body.push_back({kernels[i]});
    body.push_back({isa::Label{op, false}});
  }
  program.programs[0] = std::make_shared<const isa::Body>(body);
  const Timeline timeline = MustSimulate(config, program);
  ASSERT_EQ(timeline.ops.size(), kernels.size());
  int64_t hbm = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(timeline.ops[i].total.value(), Replay(config.chip, kernels[i])) << "kernel " << i;
    EXPECT_EQ(timeline.ops[i].count, 1);
    const Picoseconds alone = timing::KernelTime(config.chip, kernels[i]);
    EXPECT_EQ(timeline.ops[i].total, alone) << "kernel " << i;
    EXPECT_LE(timing::KernelTimeBound(config.chip, kernels[i]), alone) << "kernel " << i;
    const timing::KernelTraffic traffic = timing::TrafficOf(kernels[i]);
    hbm += (traffic.read + traffic.written).value();
  }
  // The compiler's count rounds a window's bytes once, the machine each time.
  EXPECT_NEAR(static_cast<double>(timeline.devices[0].moved.hbm().value()),
              static_cast<double>(hbm), 1e-5 * static_cast<double>(hbm));
}

TEST(PodKernel, RandomKernelsFollowTheRecurrence) { CheckRandomKernels(TestConfig()); }

TEST(PodKernel, RandomKernelsWithATurnaround) {
  configs::Config config = TestConfig();
  config.chip.dma.turnaround = Nanoseconds(300);
  config.chip.dma.write_start_latency = Nanoseconds(100);
  CheckRandomKernels(config);
}

TEST(PodKernel, ReadsWaitForTheTurnaround) {
  // F0 2.5-3.5; F1 is issued at 2.0 and waits 0.7 after F0: 4.2-5.2. Step 0
  // 3.5-3.6, step 1 5.2-5.3.
  configs::Config config = TestConfig();
  config.chip.dma.turnaround = Nanoseconds(700);
  isa::Kernel kernel;
  kernel.grid = {{2, 1.0}};
  kernel.windows = {Input(1'000'000, 1)};
  kernel.block = Compute(100);
  EXPECT_EQ(MustSimulate(config, MakeProgram({Share(kernel)})).step_time, Nanoseconds(5300));
}

TEST(PodKernel, WritesHaveALatencyOfTheirOwn) {
  // Step 0 2.0-3.0, its write starts 0.1 later: 3.1-3.6.
  configs::Config config = TestConfig();
  config.chip.dma.write_start_latency = Nanoseconds(100);
  isa::Kernel kernel;
  kernel.windows = {Output(500'000, 0)};
  kernel.block = Compute(1000);
  EXPECT_EQ(MustSimulate(config, MakeProgram({Share(kernel)})).step_time, Nanoseconds(3600));
}

TEST(PodKernel, ProductsSetUpTheirWindows) {
  // Two windows in HBM and one in VMEM: 2.0 + 2 x 0.4, fetch 0.5 + 1, a product of
  // 128 rows on one array 0.128, nothing written.
  configs::Config config = TestConfig();
  config.chip.tensor_core.product_window = Nanoseconds(400);
  isa::Kernel kernel;
  kernel.windows = {Input(500'000, 0), Input(500'000, 0), Input(500'000, 0)};
  kernel.windows[2].space = isa::MemorySpace::kVmem;
  kernel.block.mxu = {128, 128, 128, isa::NumberFormat::kBf16, 1};
  EXPECT_EQ(MustSimulate(config, MakeProgram({Share(kernel)})).step_time, Nanoseconds(4428));
}

// Time per step of a long kernel in which every step moves and computes alike.
struct SteadyCase {
  int64_t in, out, cycles;
  int64_t period;  // ps
};

class SteadyState : public ::testing::TestWithParam<SteadyCase> {};

TEST_P(SteadyState, IsTheLongestOfComputeDataAndTheirChain) {
  const SteadyCase& param = GetParam();
  const auto kernel = [&](int64_t steps) {
    isa::Kernel k;
    k.grid = {{steps, 1.0}};
    k.windows = {Input(param.in, 1), Output(param.out, 1)};
    k.block = Compute(param.cycles);
    return k;
  };
  isa::PodProgram program = MakeProgram({nullptr});
  const int32_t less = AddOp(program, "less"), more = AddOp(program, "more");
  program.programs[0] = Share(isa::Label{less, true}, kernel(100), isa::Label{less, false},
                              isa::Label{more, true}, kernel(300), isa::Label{more, false});
  const Timeline timeline = MustSimulate(TestConfig(), program);
  EXPECT_EQ((timeline.ops[more].total - timeline.ops[less].total).value(), 200 * param.period);
}

INSTANTIATE_TEST_SUITE_P(PodKernel, SteadyState,
                         ::testing::Values(
                             // Compute of 2 hides data of 1.5.
                             SteadyCase{1'000'000, 500'000, 2000, 2'000'000},
                             // Data of 1.5 hides compute of 0.1, and the latency of 0.5 as well.
                             SteadyCase{1'000'000, 500'000, 100, 1'500'000},
                             // Short steps: compute 0.1, latency 0.5 and data 0.3 follow each other
                             // twice per two steps: (0.1 + 0.5 + 0.3) / 2.
                             SteadyCase{200'000, 100'000, 100, 450'000}));

TEST(PodKernel, LoopsRepeatAndBranchesTakeOneSide) {
  // 3 x (1 + 2 x 0.1) + branch 1: 0.5.
  const isa::SharedBody inner = Share(Compute(100));
  const isa::SharedBody body = Share(Compute(1000), isa::Loop{2, inner});
  const isa::Branch branch{1, {Share(Compute(9000)), Share(Compute(500))}};
  const Timeline timeline = MustSimulate(
      TestConfig(),
      MakeProgram({Share(isa::Loop{3, body}, branch, isa::Loop{0, body}, isa::Loop{5, Share()})}));
  EXPECT_EQ(timeline.step_time, Nanoseconds(4100));
  // Loop 3 x (block, loop, 2 blocks) = 1 + 12; branch and its block 2; two loops
  // that do nothing 2.
  EXPECT_EQ(timeline.events, 17);
}

TEST(PodKernel, LocalTransfersTakeLatencyAndBothEndsOfHbm) {
  // To VMEM 0.5 + 1. Within HBM it reads and writes: 0.5 + 2. Within VMEM one
  // register (4096 B) per cycle: 0.5 + 0.1 for 409600 B.
  const isa::Dma in{isa::MemorySpace::kHbm, isa::MemorySpace::kVmem, Bytes(1'000'000)};
  const isa::Dma copy{isa::MemorySpace::kHbm, isa::MemorySpace::kHbm, Bytes(1'000'000)};
  const isa::Dma inside{isa::MemorySpace::kVmem, isa::MemorySpace::kVmem, Bytes(409'600)};
  const Timeline timeline = MustSimulate(TestConfig(), MakeProgram({Share(in, copy, inside)}));
  EXPECT_EQ(timeline.step_time, Nanoseconds(1500 + 2500 + 600));
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(3'000'000));
}

TEST(PodKernel, HostTransfersGoThroughPcie) {
  // 3 + 10000 B x 100 ps = 4; out and in are different directions and overlap.
  const isa::SharedBody out = Share(isa::HostDma{true, Bytes(10'000)});
  const Timeline timeline = MustSimulate(
      TestConfig(), MakeProgram({Share(isa::Start{{isa::StreamKind::kHost, 0}, 0, out},
                                       isa::HostDma{false, Bytes(10'000)}, isa::Done{0})}));
  EXPECT_EQ(timeline.step_time, Microseconds(4));
  EXPECT_EQ(timeline.devices[0].moved.hbm(), Bytes(20'000));
}

TEST(PodKernel, TwoStreamsShareHbmFairly) {
  // The prefetch on another stream moves from 0.5 on. The kernel's window joins
  // at 2.5, when the prefetch has 1 MB left of 3 MB; both run at half rate for
  // 2 us, in which each moves 1 MB: both end at 4.5. Compute until 5.5.
  isa::Kernel kernel;
  kernel.windows = {Input(1'000'000, 0)};
  kernel.block = Compute(1000);
  const isa::SharedBody prefetch =
      Share(isa::Dma{isa::MemorySpace::kHbm, isa::MemorySpace::kVmem, Bytes(3'000'000)});
  const Timeline timeline = MustSimulate(
      TestConfig(), MakeProgram({Share(isa::Start{{isa::StreamKind::kCollective, 0}, 0, prefetch},
                                       kernel, isa::Done{0})}));
  EXPECT_EQ(timeline.step_time, Nanoseconds(5500));
}

TEST(PodKernel, LiveBytesAreCounted) {
  isa::PodProgram program = MakeProgram({nullptr});
  program.info.buffers = {{"%a", Bytes(400'000'000)}, {"%b", Bytes(300'000'000)}};
  const auto hbm = isa::MemorySpace::kHbm;
  program.programs[0] =
      Share(isa::Alloc{hbm, 0}, isa::Alloc{hbm, 1}, Compute(1000), isa::Free{hbm, 0},
            isa::Alloc{hbm, 1}, isa::Free{hbm, 1}, isa::Free{hbm, 1});
  const Timeline timeline = MustSimulate(TestConfig(), program, {0});
  EXPECT_EQ(timeline.devices[0].peak_live.hbm(), Bytes(700'000'000));
  std::vector<double> live;
  for (const CounterSample& sample : timeline.recording.Samples()) {
    ASSERT_EQ(sample.counter, Counter::kLive);
    live.push_back(sample.value);
  }
  EXPECT_THAT(live, ::testing::ElementsAre(4e8, 7e8, 3e8, 6e8, 3e8, 0));
}

TEST(PodKernel, HbmOverflowNamesTheBuffer) {
  isa::PodProgram program = MakeProgram({nullptr});
  program.info.buffers = {{"%a", Bytes(600'000'000)}, {"%b", Bytes(400'000'000)}};
  const auto hbm = isa::MemorySpace::kHbm;
  program.programs[0] = Share(isa::Alloc{hbm, 0}, Compute(1), isa::Alloc{hbm, 1});
  // Usable is 1 GB less 0.1 GB of reserve.
  EXPECT_EQ(SimulationError(TestConfig(), program),
            "pod.chip0.hbm: %b needs 400000000 bytes, but 600000000 of 900000000 are in use: "
            "100000000 too many");
}

TEST(PodKernel, WindowsThatDoNotFitInVmemAreAnError) {
  isa::PodProgram program = MakeProgram({nullptr});
  const int32_t op = AddOp(program, "fusion.7");
  isa::Kernel kernel;
  kernel.windows = {Input(8'000'001, 0)};  // twice: 2 more than the 16 MB
  program.programs[0] = Share(isa::Label{op, true}, kernel, isa::Label{op, false});
  EXPECT_EQ(SimulationError(TestConfig(), program),
            "fusion.7: pod.chip0.vmem: a kernel's windows needs 16000002 bytes, but 0 of 16000000 "
            "are in use: 2 too many");
}

TEST(PodKernel, RecordsWhatHappened) {
  isa::PodProgram program = MakeProgram({nullptr});
  const int32_t op = AddOp(program, "fusion.1");
  isa::Kernel kernel;
  kernel.grid = {{2, 1.0}};
  kernel.windows = {Input(1'000'000, 1)};
  kernel.block = Compute(1000);
  program.programs[0] = Share(isa::Label{op, true}, kernel, isa::Label{op, false});
  const Timeline timeline = MustSimulate(TestConfig(), program, {0});
  struct Expected {
    Track track;
    int64_t step, start, end, bytes;
  };
  // F0 2.5-3.5, F1 3.5-4.5, steps 3.5-4.5-5.5; the label spans it all.
  const std::vector<Expected> expected = {
      {Track::kHbmDma, 0, 2'500'000, 3'500'000, 1'000'000},
      {Track::kVpu, 0, 3'500'000, 4'500'000, 0},
      {Track::kHbmDma, 1, 3'500'000, 4'500'000, 1'000'000},
      {Track::kVpu, 1, 4'500'000, 5'500'000, 0},
      {Track::kTensorCore, -1, 0, 5'500'000, 0},
  };
  const std::vector<Span> spans = timeline.recording.Spans();
  ASSERT_EQ(spans.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Span& span = spans[i];
    EXPECT_EQ(span.track, expected[i].track) << i;
    EXPECT_EQ(span.step, expected[i].step) << i;
    EXPECT_EQ(span.start.value(), expected[i].start) << i;
    EXPECT_EQ(span.end.value(), expected[i].end) << i;
    EXPECT_EQ(span.bytes.value(), expected[i].bytes) << i;
    EXPECT_EQ(span.op, op) << i;
  }
  // HBM runs from 2.5 to 4.5 without a gap.
  const std::vector<CounterSample> samples = timeline.recording.Samples();
  ASSERT_EQ(samples.size(), 2);
  EXPECT_EQ(samples[0].time, Nanoseconds(2500));
  EXPECT_EQ(samples[0].value, 1e12);
  EXPECT_EQ(samples[1].time, Nanoseconds(4500));
  EXPECT_EQ(samples[1].value, 0);
}

TEST(PodKernel, BrokenProgramsAreRefused) {
  isa::Kernel kernel;
  EXPECT_THAT(
      SimulationError(
          TestConfig(),
          MakeProgram({Share(isa::Start{{isa::StreamKind::kCollective, 0}, 0, Share(kernel)})})),
      HasSubstr("a kernel outside of the stream tensor_core[0]"));
}

// ---- What kernels carry ---------------------------------------------------------------------

// A kernel that reads nothing: steps of 10.
isa::Kernel Carrier(int64_t steps, bool polls = true) {
  isa::Kernel kernel;
  kernel.grid = {{steps, 1.0}};
  kernel.block = Compute(10'000);
  kernel.polls = polls;
  return kernel;
}

// So many times: control work of 12 that is looked after when a step begins.
isa::PodProgram Carrying(int64_t times, isa::Kernel kernel) {
  const isa::SharedBody carried = Share(isa::Loop{times, Share(isa::Poll{}, Latency(12'000))});
  return MakeProgram({Share(isa::Start{{isa::StreamKind::kCollective, 0}, 0, carried},
                            std::move(kernel), isa::Done{0})});
}

TEST(PodKernel, WhatItCarriesGoesOnWhenAStepBegins) {
  // Steps begin at 0, 10, ... 90, the first as the poll does, which misses it: polls at 10, 30 (ready
  // at 22), 50; the last ends at 62.
  Timeline timeline = MustSimulate(TestConfig(), Carrying(3, Carrier(10)));
  EXPECT_EQ(timeline.step_time, Microseconds(100));
  EXPECT_EQ(timeline.devices[0].compute_busy, Microseconds(100));
  // Of 3 steps, at 0, 10 and 20, it sees that at 10. From 30 on the rest follows at once.
  timeline = MustSimulate(TestConfig(), Carrying(4, Carrier(3)));
  EXPECT_EQ(timeline.step_time, Microseconds(66));
  // A kernel that does not poll carries nothing: all of it comes behind.
  timeline = MustSimulate(TestConfig(), Carrying(4, Carrier(3, /*polls=*/false)));
  EXPECT_EQ(timeline.step_time, Microseconds(78));
}

TEST(PodKernel, StepsAreMovedOverOnlyWhereNothingIsCarried) {
  isa::Kernel kernel = Carrier(1000);
  kernel.windows = {Input(1000, 1), Output(1000, 1)};
  sim::SimulationOptions every;
  every.every_step = true;
  for (const int64_t times : {0, 1, 7, 200, 900}) {
    const isa::PodProgram program = Carrying(times, kernel);
    const Timeline moved = MustSimulate(TestConfig(), program);
    const auto executed = sim::Simulate(TestConfig(), program, every);
    ASSERT_TRUE(executed.ok());
    EXPECT_EQ(moved.step_time, executed->step_time) << times;
    EXPECT_EQ(moved.devices[0].vpu_busy, executed->devices[0].vpu_busy) << times;
    if (times < 200) {
      EXPECT_LT(moved.events, executed->events / 3) << times;
    }
  }
}

}  // namespace
}  // namespace tpusim::sim
