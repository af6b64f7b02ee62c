// Steps that repeat are not executed one by one: the same time alone, nearly the same in company,
// far fewer events.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "configs/memory.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
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
  options.every_step = true;
  const Figures every = InChild(TestConfig(), program, options);
  options.every_step = false;
  const Figures fast = InChild(TestConfig(), program, options);
  EXPECT_EQ(fast.times, every.times);
  EXPECT_EQ(fast.bytes, every.bytes);
  // A kernel and 2000 transfers, each with a start and an end.
  EXPECT_EQ(every.events, 1 + 2 * 2000);
  EXPECT_LT(fast.events, 50);
}

class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}
  int64_t Number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int64_t in) { return Number(1, in) == 1; }

  // `cmem`: half of the operands are there.
  isa::Kernel Kernel(int64_t longest, bool cmem = false) {
    isa::Kernel kernel;
    const int64_t dims = Number(1, 3);
    for (int64_t d = 0; d < dims; ++d) {
      kernel.grid.push_back({Number(1, longest), static_cast<double>(Number(4, 8)) / 8});
    }
    for (int64_t w = Number(1, 4); w > 0; --w) {
      const auto mask = static_cast<uint32_t>(Number(0, (1 << dims) - 1));
      const auto buffers = static_cast<int32_t>(Number(1, 3));
      const int64_t bytes = Number(1, Chance(2) ? 30'000 : 300'000);
      kernel.windows.push_back(Chance(3) ? Output(bytes, mask, buffers)
                                         : Input(bytes, mask, buffers));
      if (cmem && Chance(2)) kernel.windows.back().space = isa::MemorySpace::kCmem;
    }
    kernel.block = Compute(Number(0, 500));
    return kernel;
  }

 private:
  std::mt19937 random_;
};

// A chip on which nothing is round.
configs::Config UnevenConfig(std::array<int64_t, 3> shape = {1, 1, 1},
                             std::array<bool, 3> wrap = {false, false, false}) {
  configs::Config config = TestConfig(shape, wrap);
  config.chip.dma.turnaround = Nanoseconds(37);
  config.chip.dma.write_start_latency = Nanoseconds(210);
  config.chip.hbm.bytes_per_second = BytesPerSecond(0.77e12);
  return config;
}

// Returns the time of the longest step: its windows, a start latency, its compute.
Picoseconds LongestStep(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  Picoseconds longest = chip.dma.start_latency + timing::StepTime(chip, kernel.block);
  for (const isa::Window& w : kernel.windows) {
    longest += TransferTime(w.bytes, configs::HbmRate(chip));
  }
  return longest;
}

TEST(SteadyRun, WhoLooksSeesEveryStep) {
  // Two dimensions that repeat, one inside the other.
  isa::Kernel kernel;
  kernel.grid = {{12, 0.5}, {9, 1.0}};
  kernel.windows = {Input(130'000, 1), Input(70'000, 2), Output(50'000, 3)};
  kernel.block = Compute(90);
  const isa::PodProgram program = MakeProgram({Share(kernel)});
  SimulationOptions options;
  options.record_devices = {0};
  const Figures fast = InChild(UnevenConfig(), program, options);
  options.every_step = true;
  const Figures every = InChild(UnevenConfig(), program, options);
  EXPECT_LT(fast.events, every.events / 2);
  // 108 steps, and as many transfers of each kind but for the first two at once.
  EXPECT_GT(every.spans.size(), 5 * 2 * 108);
  ASSERT_EQ(fast.spans.size(), every.spans.size());
  for (size_t i = 0; i < every.spans.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(fast.spans[i]), static_cast<double>(every.spans[i]), 10) << i;
  }
}

TEST(SteadyRun, RandomKernelsTakeAsLongAsWithEveryStep) {
  Draws draws(7);
  int64_t fewer = 0;
  for (int i = 0; i < 200; ++i) {
    const isa::Kernel kernel = draws.Kernel(20);
    const isa::PodProgram program = MakeProgram({Share(kernel)});
    const configs::Config config = draws.Chance(2) ? UnevenConfig() : TestConfig();
    SimulationOptions options;
    options.every_step = true;
    const Figures every = InChild(config, program, options);
    options.every_step = false;
    // Whether or not device 0 is recorded.
    if (draws.Chance(2)) options.record_devices = {0};
    const Figures fast = InChild(config, program, options);
    ASSERT_FALSE(every.times.empty()) << i;
    for (size_t t = 0; t < every.times.size(); ++t) {
      EXPECT_NEAR(static_cast<double>(fast.times[t]), static_cast<double>(every.times[t]), 10)
          << i << " " << t;
    }
    EXPECT_EQ(fast.bytes, every.bytes) << i;
    fewer += fast.events < every.events;
  }
  EXPECT_GT(fewer, 100);
}

// Returns the chip with a CMEM, a little or much faster than HBM.
configs::Config WithCmem(double rate) {
  configs::Config config = UnevenConfig();
  config.chip.cmem.bytes = Bytes(1'000'000'000);
  config.chip.cmem.bytes_per_second = BytesPerSecond(rate);
  return config;
}

TEST(SteadyRun, RandomKernelsWithOperandsInCmemTakeAsLongAsWithEveryStep) {
  Draws draws(11);
  int64_t fewer = 0;
  for (int i = 0; i < 150; ++i) {
    const isa::Kernel kernel = draws.Kernel(20, /*cmem=*/true);
    const isa::PodProgram program = MakeProgram({Share(kernel)});
    const configs::Config config = WithCmem(draws.Chance(2) ? 0.93e12 : 3.7e12);
    SimulationOptions options;
    options.every_step = true;
    const Figures every = InChild(config, program, options);
    options.every_step = false;
    if (draws.Chance(2)) options.record_devices = {0};
    const Figures fast = InChild(config, program, options);
    ASSERT_FALSE(every.times.empty()) << i;
    // And as the compiler reckons.
    EXPECT_EQ(every.times[0], timing::KernelTime(config.chip, kernel).value()) << i;
    for (size_t t = 0; t < every.times.size(); ++t) {
      EXPECT_NEAR(static_cast<double>(fast.times[t]), static_cast<double>(every.times[t]), 10)
          << i << " " << t;
    }
    EXPECT_EQ(fast.bytes, every.bytes) << i;
    fewer += fast.events < every.events;
  }
  EXPECT_GT(fewer, 70);
}

TEST(SteadyRun, OperandsInCmemBesideTransfersOfHbmAndCmem) {
  // A kernel that reads both memories, while copies go from one to the other.
  Draws draws(12);
  for (int i = 0; i < 60; ++i) {
    isa::Kernel kernel = draws.Kernel(40, /*cmem=*/true);
    while (kernel.Steps() > 2000) kernel = draws.Kernel(20, /*cmem=*/true);
    const configs::Config config = WithCmem(draws.Chance(2) ? 0.93e12 : 3.7e12);
    const int64_t alone = timing::KernelTime(config.chip, kernel).value();
    isa::Dma copy{isa::MemorySpace::kHbm, isa::MemorySpace::kCmem,
                  Bytes(draws.Number(1, alone / 1000) * 500)};
    if (draws.Chance(2)) std::swap(copy.from, copy.to);
    isa::PodProgram program = MakeProgram({Share(
        isa::Start{
            {isa::StreamKind::kCollective, 0}, 0, Share(Latency(draws.Number(1, 5'000)), copy)},
        isa::Label{0, true}, kernel, isa::Label{0, false}, isa::Done{0})});
    AddOp(program, "kernel");
    SimulationOptions options;
    options.every_step = true;
    const Figures every = InChild(config, program, options);
    options.every_step = false;
    const Figures fast = InChild(config, program, options);
    ASSERT_EQ(every.ops.size(), 1) << i;
    ASSERT_EQ(fast.ops.size(), 1) << i;
    const double slack = 0.02 * static_cast<double>(every.ops[0]) +
                         static_cast<double>(LongestStep(config.chip, kernel).value());
    EXPECT_NEAR(static_cast<double>(fast.ops[0]), static_cast<double>(every.ops[0]), slack) << i;
    EXPECT_EQ(fast.bytes, every.bytes) << i;
  }
}

// A kernel beside others who use its HBM.
struct Company {
  configs::Config config;
  isa::PodProgram program;
  SimulationOptions options;
};

enum class Beside { kTransfer, kTransfers, kRing };

// Draws other users for about as long as the kernel takes alone, and some.
Company Draw(Draws& draws, Beside beside, const isa::Kernel& kernel) {
  Company c;
  isa::Body body;
  const auto alone = timing::KernelTime(UnevenConfig().chip, kernel);
  if (beside == Beside::kRing) {
    // Chips pass windows on, all the time; some add.
    constexpr int64_t kChips = 4;
    c.config = UnevenConfig({kChips, 1, 1}, {true, false, false});
    // Links as they are beside HBM, or so fast that HBM shares them out.
    const double link = draws.Chance(3) ? 3e11 : 3e10;
    c.config.chip.ici.link_bytes_per_second = BytesPerSecond(link);
    c.options.folding = draws.Chance(2) ? Folding::kExact : Folding::kOff;
    if (c.options.folding == Folding::kOff) c.options.impairments.chips.push_back({1, 0.8});
    isa::Rdma rdma;
    rdma.bytes = Bytes(draws.Number(1'000, 3'000'000));
    rdma.arrival_flag = 0;
    if (draws.Chance(2)) rdma.reduce = isa::ReduceAdd{4, 1};
    const int64_t hops =
        1'000'000 + TransferTime(rdma.bytes, BytesPerSecond(link)).value();  // ps, about
    const int64_t lasts =
        c.options.folding == Folding::kExact ? 2 * alone.value() : alone.value() / 2;
    const isa::SharedBody ring = Share(isa::Loop{1 + lasts / hops, Share(rdma, isa::Wait{0, 1})});
    body = MakeBody(isa::Start{{isa::StreamKind::kCollective, 0}, 0, ring}, isa::Label{0, true},
                    kernel, isa::Label{0, false}, isa::Done{0});
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (int32_t d = 0; d < kChips; ++d) pairs.emplace_back(d, (d + 1) % kChips);
    const isa::SharedBody shared = std::make_shared<const isa::Body>(body);
    c.program = MakeProgram({shared});
    c.program.program_of_device.assign(kChips, 0);
    c.program.routes.push_back(RouteBetween(c.config, pairs));
    AddOp(c.program, "kernel");
    return c;
  }
  c.config = UnevenConfig();
  const int64_t streams = beside == Beside::kTransfer ? 1 : draws.Number(1, 3);
  for (int32_t s = 0; s < streams; ++s) {
    isa::Dma dma{isa::MemorySpace::kHbm, isa::MemorySpace::kVmem, Bytes(1)};
    isa::SharedBody work;
    if (beside == Beside::kTransfer) {
      dma.bytes = Bytes(draws.Number(1, alone.value() / 1000) * 1000);
      work = Share(Latency(draws.Number(1, 5'000)), dma);
    } else {
      // Now shorter, now longer than steps.
      const int64_t step = alone.value() / kernel.Steps();
      const int64_t longest = step * draws.Number(1, 200);
      dma.bytes = Bytes(draws.Number(1, 1 + longest));
      const int64_t pause = draws.Number(1, 1 + longest / 1000);  // ns
      const int64_t period = (pause + 500) * 1000 + 2 * dma.bytes.value();
      work = Share(isa::Loop{1 + alone.value() * 2 / period, Share(dma, Latency(pause))});
    }
    body.push_back({isa::Start{{isa::StreamKind::kCollective, s}, s, work}});
  }
  body.push_back({isa::Label{0, true}});
  body.push_back({kernel});
  body.push_back({isa::Label{0, false}});
  for (int32_t s = 0; s < streams; ++s) body.push_back({isa::Done{s}});
  c.program = MakeProgram({std::make_shared<const isa::Body>(body)});
  AddOp(c.program, "kernel");
  return c;
}

class InCompany : public ::testing::TestWithParam<Beside> {};

TEST_P(InCompany, AgreesWithinTwoPercentAndAStep) {
  Draws draws(static_cast<uint32_t>(GetParam()) + 100);
  int64_t fewer = 0;
  for (int i = 0; i < 150; ++i) {
    isa::Kernel kernel = draws.Kernel(draws.Chance(2) ? 100 : 12);
    while (kernel.Steps() > 3000) kernel = draws.Kernel(20);
    Company c = Draw(draws, GetParam(), kernel);
    c.options.every_step = true;
    const Figures every = InChild(c.config, c.program, c.options);
    c.options.every_step = false;
    if (draws.Chance(4)) c.options.record_devices = {0};
    const Figures fast = InChild(c.config, c.program, c.options);
    ASSERT_FALSE(every.times.empty()) << i;
    const auto step = static_cast<double>(LongestStep(c.config.chip, kernel).value());
    ASSERT_EQ(every.ops.size(), 1) << i;
    ASSERT_EQ(fast.ops.size(), 1) << i;
    // The kernel on the device that ended last, if it is one and the same; and the
    // whole. After their kernels, devices that are no longer in step settle into one
    // of several orders: then the kernels have to be the last to end.
    const auto difference = [](int64_t a, int64_t b) {
      return std::abs(static_cast<double>(a - b));
    };
    const auto expected = static_cast<double>(every.ops[0]);
    double off = difference(fast.ops[0], every.ops[0]);
    if (every.critical_device != fast.critical_device) off = 0;
    EXPECT_LE(off, 0.02 * expected + step) << i;
    EXPECT_LE(difference(fast.times[0], every.times[0]),
              0.02 * static_cast<double>(every.times[0]) + step)
        << i;
    EXPECT_EQ(fast.bytes, every.bytes) << i;
    // Busy times do not depend on when.
    for (size_t t : {2, 3, 4}) {
      EXPECT_NEAR(static_cast<double>(fast.times[t]), static_cast<double>(every.times[t]), 10)
          << i << " " << t;
    }
    fewer += fast.events < every.events;
  }
  EXPECT_GT(fewer, 70);
}

INSTANTIATE_TEST_SUITE_P(SteadyRun, InCompany,
                         ::testing::Values(Beside::kTransfer, Beside::kTransfers, Beside::kRing));

}  // namespace
}  // namespace tpusim::sim
