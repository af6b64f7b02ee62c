// One block or kernel at a time. Steps that repeat are tested where they run
// (tests/sim/pod_kernel_test.cc).
#include "models/chip/tensor_core.h"

#include <gmock/gmock.h>

#include <functional>
#include <optional>

#include "configs/status_macros.h"
#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::tpusim::testing::Note;

struct TensorCoreBench : testing::Bench {
  explicit TensorCoreBench(sc_core::sc_module_name name = "bench") : Bench(name) {
    chip.mxu.lhs_rows_per_cycle = 8;
    chip.mxu.weight_rows_per_cycle = 4;
    chip.mxu.result_latency_cycles = 100;
    vmem.capacity = Bytes(1000);
    core.emplace("core", chip, /*every_step=*/true, probe);
    core->mxu(mxu);
    core->vpu(vpu);
    core->xlu(xlu);
    core->vmem(vmem);
    core->dma(dma);
  }
  testing::NoProbe probe;
  testing::StubSlot mxu, vpu, xlu;
  testing::StubMemory vmem;
  testing::StubDma dma;
  std::optional<TensorCore> core;
  Note note;
  std::function<bool()> ended = [this] { return note.times.size() == 1; };
};

isa::Block Product(int64_t rows) {
  isa::Block block;
  block.mxu = {rows, 128, 128};
  return block;
}

// 1024 rows, 8 per cycle: 128 cycles; the last row goes through the array in 100 more.
TEST(TensorCore, AProductStreamsItsRowsAndDrains) {
  TensorCoreBench bench;
  bench.Elaborate();
  bench.core->Run(Product(1024), -1, &bench.note);
  EXPECT_FALSE(bench.core->idle());
  EXPECT_TRUE(bench.HappensAt(228'000, bench.ended));
  EXPECT_TRUE(bench.core->idle());
  EXPECT_THAT(bench.mxu.busy, ElementsAre(Pair(0, 128'000)));
  EXPECT_THAT(bench.vpu.busy, ElementsAre(Pair(0, 0)));
}

// 8 rows are one cycle, but the next weights take 128 / 4 to load: 32.
TEST(TensorCore, AProductOfFewRowsWaitsForItsWeights) {
  TensorCoreBench bench;
  bench.Elaborate();
  bench.core->Run(Product(8), -1, &bench.note);
  EXPECT_TRUE(bench.HappensAt(132'000, bench.ended));
  EXPECT_THAT(bench.mxu.busy, ElementsAre(Pair(0, 32'000)));
}

// 40 operations on 4 slots are 10 cycles; 30 stores on 1 are 30, beside them.
TEST(TensorCore, VectorSlotsAreBusySideBySide) {
  TensorCoreBench bench;
  bench.Elaborate();
  bench.RunTo(500);
  isa::Block block;
  block.valu = 40;
  block.store = 30;
  bench.core->Run(block, -1, &bench.note);
  EXPECT_TRUE(bench.HappensAt(30'500, bench.ended));
  EXPECT_THAT(bench.vpu.busy, ElementsAre(Pair(500, 30'000)));
}

// 20 on two units: 10 cycles of both the cross-lane units and the vector unit.
TEST(TensorCore, CrossLaneWorkClaimsBoth) {
  TensorCoreBench bench;
  bench.Elaborate();
  isa::Block block;
  block.xlu = 20;
  bench.core->Run(block, -1, &bench.note);
  EXPECT_TRUE(bench.HappensAt(10'000, bench.ended));
  EXPECT_THAT(bench.xlu.busy, ElementsAre(Pair(0, 10'000)));
  EXPECT_THAT(bench.vpu.busy, ElementsAre(Pair(0, 10'000)));
}

TEST(TensorCore, WhatNothingHidesComesOnTop) {
  TensorCoreBench bench;
  bench.Elaborate();
  isa::Block block = testing::Compute(10);
  block.latency = Cycles(7);
  bench.core->Run(block, -1, &bench.note);
  EXPECT_TRUE(bench.HappensAt(17'000, bench.ended));
  EXPECT_THAT(bench.vpu.busy, ElementsAre(Pair(0, 10'000)));
}

isa::Kernel OneStep() {
  isa::Kernel kernel;
  kernel.windows = {testing::Input(100, 0), testing::Output(60, 0, /*buffers=*/1)};
  kernel.block = testing::Compute(10);
  return kernel;
}

// Launch 2 us; a fetch that ends when the test says so, at 3 us; 10 ns of block; a write-back.
TEST(TensorCore, AKernelFetchesComputesAndWritesBack) {
  TensorCoreBench bench;
  const isa::Kernel kernel = OneStep();
  bench.Elaborate();
  ASSERT_TRUE(bench.core->Run(kernel, 5, /*channel=*/2, &bench.note).ok());
  EXPECT_TRUE(bench.HappensAt(2'000'000, [&] { return bench.dma.issued.size() == 1; }));
  EXPECT_EQ(bench.dma.issued[0].channel, 2);
  EXPECT_EQ(bench.dma.issued[0].transfer.op, 5);
  EXPECT_EQ(bench.dma.issued[0].transfer.bytes, Bytes(100));
  EXPECT_FALSE(bench.dma.issued[0].transfer.write);
  bench.RunTo(3'000'000);
  EXPECT_TRUE(bench.vpu.busy.empty()) << "a block began before its data were there";
  bench.dma.EndNext();
  EXPECT_THAT(bench.vpu.busy, ElementsAre(Pair(3'000'000, 10'000)));
  EXPECT_TRUE(bench.HappensAt(3'010'000, [&] { return bench.dma.issued.size() == 2; }));
  EXPECT_TRUE(bench.dma.issued[1].transfer.write);
  EXPECT_EQ(bench.dma.issued[1].transfer.bytes, Bytes(60));
  bench.RunTo(4'000'000);
  EXPECT_TRUE(bench.note.times.empty()) << "the kernel ended before its result was written";
  bench.dma.EndNext();
  EXPECT_THAT(bench.note.times, ElementsAre(4'000'000));
}

// Twice 100 in and once 60 out, from the start of the kernel to its end.
TEST(TensorCore, WindowsOccupyVmemWhileTheKernelRuns) {
  TensorCoreBench bench;
  const isa::Kernel kernel = OneStep();
  bench.Elaborate();
  ASSERT_TRUE(bench.core->Run(kernel, -1, 0, &bench.note).ok());
  EXPECT_EQ(bench.vmem.used, Bytes(260));
  bench.RunTo(2'000'000);
  bench.dma.EndNext();
  bench.RunTo(2'010'000);
  EXPECT_EQ(bench.vmem.used, Bytes(260));
  bench.dma.EndNext();
  EXPECT_EQ(bench.vmem.used, Bytes(0));
}

// Two steps, both inputs double-buffered: the second is fetched while the first computes.
TEST(TensorCore, TheNextStepIsFetchedWhileOneComputes) {
  TensorCoreBench bench;
  isa::Kernel kernel;
  kernel.grid = {{2, 1.0}};
  kernel.windows = {testing::Input(100, 1)};
  kernel.block = testing::Compute(10);
  bench.Elaborate();
  ASSERT_TRUE(bench.core->Run(kernel, -1, 0, &bench.note).ok());
  EXPECT_TRUE(bench.HappensAt(2'000'000, [&] { return bench.dma.issued.size() == 2; }));
  bench.dma.EndNext();
  bench.RunTo(2'010'000);
  EXPECT_EQ(bench.vpu.busy.size(), 1u) << "the second block began without its data";
  bench.RunTo(2'500'000);
  bench.dma.EndNext();
  EXPECT_THAT(bench.vpu.busy, ElementsAre(Pair(2'000'000, 10'000), Pair(2'500'000, 10'000)));
  EXPECT_TRUE(bench.HappensAt(2'510'000, bench.ended));
}

// 2 us and 30 ns for each of two windows of HBM around a product; one of VMEM sets nothing up.
TEST(TensorCore, WindowsOfAProductAreSetUpOneAfterTheOther) {
  TensorCoreBench bench;
  bench.chip.tensor_core.product_window = Nanoseconds(30);
  isa::Kernel kernel;
  kernel.windows = {testing::Input(100, 0), testing::Input(100, 0), testing::Input(100, 0)};
  kernel.windows[2].space = isa::MemorySpace::kVmem;
  kernel.block = Product(8);
  bench.Elaborate();
  ASSERT_TRUE(bench.core->Run(kernel, -1, 0, &bench.note).ok());
  EXPECT_TRUE(bench.HappensAt(2'060'000, [&] { return !bench.dma.issued.empty(); }));
}

TEST(TensorCore, AKernelWhoseWindowsDoNotFitIsRefused) {
  TensorCoreBench bench;
  isa::Kernel kernel = OneStep();
  kernel.windows[0].bytes = Bytes(471);  // 2 x 471 + 60 = 1002 of 1000
  bench.Elaborate();
  EXPECT_THAT(Message(bench.core->Run(kernel, -1, 0, &bench.note)),
              HasSubstr("a kernel's windows is too large"));
  EXPECT_TRUE(bench.core->idle());
  EXPECT_EQ(bench.vmem.used, Bytes(0));
  kernel.windows[0].bytes = Bytes(470);
  EXPECT_TRUE(bench.core->Run(kernel, -1, 0, &bench.note).ok());
}

TEST(TensorCore, OneThingAtATime) {
  TensorCoreBench bench;
  const isa::Kernel kernel = OneStep();
  bench.Elaborate();
  bench.core->Run(testing::Compute(10), -1, &bench.note);
  bench.RunTo(9'999);
  EXPECT_DEATH(bench.core->Run(testing::Compute(10), -1, &bench.note), "a TensorCore that is busy");
  EXPECT_DEATH((void)bench.core->Run(kernel, -1, 0, &bench.note), "a TensorCore that is busy");
  bench.RunTo(10'000);
  EXPECT_TRUE(bench.core->idle());
}

// 2 us of launch, 500 ns of data at 1e12 B/s for 500,000 bytes, 10 ns of vector work.
TEST(TensorCore, SaysWhatAKernelTookItsTimeFor) {
  TensorCoreBench bench;
  bench.vmem.capacity = Bytes(2'000'000);
  isa::Kernel kernel;
  kernel.windows = {testing::Input(500'000, 0)};
  kernel.block = testing::Compute(10);
  bench.Elaborate();
  ASSERT_TRUE(bench.core->Run(kernel, -1, 0, &bench.note).ok());
  bench.RunTo(3'000'000);  // 500 ns of latency of the DMA
  bench.dma.EndNext();
  ASSERT_TRUE(bench.HappensAt(3'010'000, bench.ended));
  const TimeSplit split = bench.core->Split(Picoseconds(3'010'000));
  EXPECT_EQ(split.vpu, Picoseconds(10'000));
  EXPECT_EQ(split.mxu, Picoseconds(0));
  EXPECT_EQ(split.hbm, Picoseconds(500'000));
  EXPECT_EQ(split.latency, Picoseconds(2'500'000));
}

struct Listener : StepListener {
  int told = 0;
  void StepBegan() override { ++told; }
};

// Three steps of 10 ns in VMEM, without a launch.
TEST(TensorCore, TellsOfTheNextStepOfAKernelThatPolls) {
  TensorCoreBench bench;
  Listener listener, forgotten;
  isa::Kernel kernel;
  kernel.grid = {{3, 1.0}};
  kernel.block = testing::Compute(10);
  kernel.polls = true;
  bench.Elaborate();
  bench.core->TellStep(&listener);
  bench.core->TellStep(&forgotten);
  bench.core->ForgetStep(&forgotten);
  ASSERT_TRUE(bench.core->Run(kernel, -1, 0, &bench.note).ok());
  bench.RunTo(15'000);  // in the second step
  EXPECT_EQ(listener.told, 1);
  bench.core->TellStep(&listener);
  EXPECT_EQ(listener.told, 1);
  EXPECT_TRUE(bench.HappensAt(20'000, [&] { return listener.told == 2; }));
  EXPECT_EQ(forgotten.told, 0);
}

TEST(TensorCore, TellsOfNoStepOfOtherKernels) {
  TensorCoreBench bench;
  Listener listener;
  isa::Kernel kernel;
  kernel.grid = {{3, 1.0}};
  kernel.block = testing::Compute(10);
  bench.Elaborate();
  bench.core->TellStep(&listener);
  ASSERT_TRUE(bench.core->Run(kernel, -1, 0, &bench.note).ok());
  bench.RunTo(3'000'000);
  EXPECT_TRUE(bench.core->idle());
  EXPECT_EQ(listener.told, 0);
}

}  // namespace
}  // namespace tpusim::chip
